#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/problem/config.h"
#include "scheduler/problem/quantity.h"
#include "scheduler/problem/yaml_tree.h"

namespace counterflow {

// A place in the config's tree that knows its key path and its line, so that reading a value and
// refusing it are one line each. Every function throws InputError with place, key, value and rule.
class Cursor {
 public:
  Cursor(yaml::NodePtr node, std::string path, std::string_view time_unit = {})
      : node_(std::move(node)), path_(std::move(path)), time_unit_(time_unit) {}

  [[nodiscard]] SourceLocation where() const { return node_->where(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_map() const { return node_->kind == yaml::Node::Kind::map; }
  [[nodiscard]] bool is_list() const { return node_->kind == yaml::Node::Kind::list; }
  // The same place, bare durations below it counted in this unit.
  [[nodiscard]] Cursor with_time_unit(std::string_view unit) const { return {node_, path_, unit}; }
  // "path: message" at this place.
  [[noreturn]] void fail(std::string_view message) const;

  // Maps. Checks that this is one, has no keys but these, and none twice.
  void allow_keys(std::initializer_list<std::string_view> known) const;
  // The value of a key, if it is there.
  [[nodiscard]] std::optional<Cursor> find(std::string_view key) const;
  // The value of a key that must be there; `example` is a value for the message.
  [[nodiscard]] Cursor at(std::string_view key, std::string_view example) const;

  // Lists. `read` of each entry, in order; `what` says what the list holds, for messages.
  template <typename Read>
  [[nodiscard]] auto list_of(std::string_view what, Read read) const {
    check_list(what);
    std::vector<decltype(read(*this))> values;
    values.reserve(node_->items.size());
    for (std::size_t i = 0; i < node_->items.size(); ++i) values.push_back(read(item(i)));
    return values;
  }
  // A list of exactly `count` entries.
  [[nodiscard]] std::vector<Cursor> tuple(std::size_t count, std::string_view what) const;

  // Scalars.
  [[nodiscard]] Time duration() const;
  [[nodiscard]] Bytes size() const;
  [[nodiscard]] double rate() const;
  [[nodiscard]] double factor(const FactorRange& range = {}) const;
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) const;
  [[nodiscard]] int small_integer(int least, std::int64_t most) const {
    return static_cast<int>(integer(least, most));
  }
  [[nodiscard]] bool boolean() const;
  // Any text but an empty one; `what` is what it should say, for the message.
  [[nodiscard]] std::string text(std::string_view what) const;
  // One of these words.
  [[nodiscard]] std::string_view choice(const std::vector<std::string_view>& words) const;

  // One value, or a list of them.
  template <typename Read>
  [[nodiscard]] auto per_item(Read read) const {
    PerItem<decltype(read(*this))> result;
    result.where = where();
    result.key = path_;
    result.is_list = is_list();
    result.values = is_list() ? list_of("values", read) : std::vector{read(*this)};
    return result;
  }
  template <typename Read>
  [[nodiscard]] auto located(Read read) const {
    return Located<decltype(read(*this))>{read(*this), where()};
  }

 private:
  [[nodiscard]] Cursor item(std::size_t index) const;
  [[nodiscard]] std::string path_of(std::string_view key) const;
  void check_list(std::string_view what) const;
  // The text of a scalar, or words for what stands here instead: no parser takes them for a value.
  [[nodiscard]] std::string spoken() const;
  // `parse` of the scalar, its refusal located.
  template <typename Parse>
  [[nodiscard]] auto parsed(Parse parse) const;

  yaml::NodePtr node_;
  std::string path_;
  std::string_view time_unit_;
};

}  // namespace counterflow

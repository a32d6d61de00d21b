#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/units.h"

// Strict reading of our own JSON files: every access says what it expects and throws an InputError
// naming the file and the path of the value that is something else.
namespace counterflow::json {

inline constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kMinInteger = std::numeric_limits<std::int64_t>::min();

// Parses a document; `file` is for messages. Throws InputError: with line and column where it is no
// JSON, with the key where an object has one twice.
[[nodiscard]] nlohmann::json parse(std::string_view text, const std::string& file);

// A value of a document, which must outlive it. Where it stands is only looked up when something is
// wrong, so going through a document costs little more than its values. O(document) to fail.
class Node {
 public:
  Node(const nlohmann::json& document, std::string file)
      : value_(document),
        document_(std::make_shared<const Document>(Document{document, std::move(file)})) {}

  // A member of an object, an element of an array.
  [[nodiscard]] Node at(std::string_view key) const;
  [[nodiscard]] Node at(std::size_t index) const;
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] bool is_null() const;
  // Elements of an array.
  [[nodiscard]] std::size_t size() const;

  [[nodiscard]] std::int64_t integer(std::int64_t least = kMinInteger,
                                     std::int64_t most = kMaxInteger) const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::string text() const;

  // A table: calls read(row) for each row, every row an array of exactly `columns` values.
  template <typename Read>
  void for_each_row(std::size_t columns, Read read) const;

  [[noreturn]] void fail(const std::string& message) const;

 private:
  friend class Row;
  struct Document {
    const nlohmann::json& root;
    std::string file;
  };
  Node(const nlohmann::json& value, std::shared_ptr<const Document> document)
      : value_(value), document_(std::move(document)) {}

  const nlohmann::json& value_;
  std::shared_ptr<const Document> document_;
};

// Reads a row of a table from left to right.
class Row {
 public:
  Row(const Node& table, std::size_t row, std::size_t columns);

  [[nodiscard]] std::int64_t integer(std::int64_t least = kMinInteger,
                                     std::int64_t most = kMaxInteger);
  template <typename T>
  [[nodiscard]] T integer_as(std::int64_t least = std::numeric_limits<T>::min(),
                             std::int64_t most = std::numeric_limits<T>::max()) {
    return static_cast<T>(integer(least, most));
  }
  [[nodiscard]] const std::string& text();
  // An op in the text of schedule files, "" for none.
  [[nodiscard]] Op op();
  // Several ops with ';' between them, appended to `out`.
  void ops(std::vector<Op>& out);
  // One of the names name(E) gives, from the first enumerator to `last`.
  template <typename E>
  [[nodiscard]] E one_of(E last);

  // Objects to the value just read.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  [[nodiscard]] const nlohmann::json& next();

  const Node& table_;
  std::size_t row_;
  std::size_t column_ = 0;  // of the next value
};

// ---- Details ------------------------------------------------------------------------------------

template <typename Read>
void Node::for_each_row(std::size_t columns, Read read) const {
  const std::size_t rows = size();
  for (std::size_t i = 0; i < rows; ++i) {
    Row row(*this, i, columns);
    read(row);
  }
}

// The enumerator of that name, or last + 1.
template <typename E>
[[nodiscard]] int enumerator_named(std::string_view text, E last) {
  int i = 0;
  while (i <= static_cast<int>(last) && name(static_cast<E>(i)) != text) ++i;
  return i;
}

// "run, transfer or step_end", for messages.
[[nodiscard]] std::string either(const std::vector<std::string_view>& names);

template <typename E>
[[nodiscard]] std::string names_up_to(E last) {
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.push_back(name(static_cast<E>(i)));
  return either(names);
}

template <typename E>
E Row::one_of(E last) {
  const std::string& word = text();
  const int found = enumerator_named(word, last);
  if (found > static_cast<int>(last)) fail("'" + word + "' is none of " + names_up_to(last));
  return static_cast<E>(found);
}

template <typename E>
[[nodiscard]] E one_of(const Node& node, E last) {
  const std::string word = node.text();
  const int found = enumerator_named(word, last);
  if (found > static_cast<int>(last)) node.fail("'" + word + "' is none of " + names_up_to(last));
  return static_cast<E>(found);
}

}  // namespace counterflow::json

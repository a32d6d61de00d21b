#include "scheduler/problem/cursor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "scheduler/problem/guess.h"
#include "scheduler/problem/quantity.h"
#include "scheduler/problem/text.h"

namespace counterflow {
namespace {

// YAML spells its booleans in three ways.
bool is_spelling(std::string_view text, std::string_view word) {
  return (word == "true" && (text == "True" || text == "TRUE")) ||
         (word == "false" && (text == "False" || text == "FALSE"));
}

using Kind = yaml::Node::Kind;

// Keys that have a meaning in the format but not in this version.
constexpr std::string_view kReserved[] = {"blocks"};

[[noreturn]] void refuse_key(const yaml::Entry& entry, const std::string& path,
                             const yaml::Node& map, std::initializer_list<std::string_view> known) {
  if (std::find(std::begin(kReserved), std::end(kReserved), entry.key) != std::end(kReserved)) {
    throw InputError(entry.where,
                     path + ": this key is reserved and not supported by this version; remove it");
  }
  if (entry.key == "<<") {
    throw InputError(entry.where, path + ": merge keys are not supported; write the keys out");
  }
  // A key that is there already is no guess, unless it is an override, which replaces it.
  const bool is_override = entry.where.line == 0;
  std::vector<std::string_view> open;
  for (const std::string_view key : known) {
    if (is_override || !map.find(key)) open.push_back(key);
  }
  const std::vector<std::string_view> likely = guesses(entry.key, open);
  const std::string hint = likely.empty()
                               ? fmt::format("the keys here are {}", fmt::join(known, ", "))
                               : fmt::format("did you mean {}?", fmt::join(likely, " or "));
  throw InputError(entry.where, fmt::format("{}: unknown key; {}", path, hint));
}

std::string refuse_twice(const std::string& path, const SourceLocation& first) {
  return fmt::format("{}: given twice, first at {}; remove one of them", path, to_string(first));
}

}  // namespace

void Cursor::fail(std::string_view message) const {
  throw InputError(where(),
                   path_.empty() ? std::string(message) : fmt::format("{}: {}", path_, message));
}

std::string Cursor::path_of(std::string_view key) const {
  return path_.empty() ? shown(key) : fmt::format("{}.{}", path_, shown(key));
}

void Cursor::allow_keys(std::initializer_list<std::string_view> known) const {
  if (!is_map()) {
    fail(fmt::format("{} is not a map; write keys below it, such as {}: ...", shown(spoken()),
                     *known.begin()));
  }
  std::vector<const yaml::Entry*> seen(known.size(), nullptr);
  for (const yaml::Entry& entry : node_->entries) {
    const auto place = std::find(known.begin(), known.end(), entry.key);
    if (place == known.end()) refuse_key(entry, path_of(entry.key), *node_, known);
    const yaml::Entry*& first = seen[static_cast<std::size_t>(place - known.begin())];
    if (first != nullptr) {
      throw InputError(entry.where, refuse_twice(path_of(entry.key), first->where));
    }
    first = &entry;
  }
}

std::optional<Cursor> Cursor::find(std::string_view key) const {
  yaml::NodePtr value = node_->find(key);
  if (!value) return std::nullopt;
  return Cursor(std::move(value), path_of(key), time_unit_);
}

Cursor Cursor::at(std::string_view key, std::string_view example) const {
  auto value = find(key);
  if (!value) {
    throw InputError(
        where(), fmt::format("{}: missing; write for example {}: {}", path_of(key), key, example));
  }
  return *std::move(value);
}

Cursor Cursor::item(std::size_t index) const {
  return {node_->items[index], fmt::format("{}[{}]", path_, index), time_unit_};
}

void Cursor::check_list(std::string_view what) const {
  if (!is_list()) fail(fmt::format("{} is not a list; write a list of {}", shown(spoken()), what));
}

std::vector<Cursor> Cursor::tuple(std::size_t count, std::string_view what) const {
  if (!is_list()) fail(fmt::format("{} is not {}", shown(spoken()), what));
  if (node_->items.size() != count) {
    fail(fmt::format("a list of {} is not {}", node_->items.size(), what));
  }
  return list_of(what, [](const Cursor& entry) { return entry; });
}

std::string Cursor::spoken() const {
  switch (node_->kind) {
    case Kind::scalar:
      return node_->text;
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
    case Kind::null:
      break;
  }
  return "an empty value";
}

template <typename Parse>
auto Cursor::parsed(Parse parse) const {
  try {
    return parse(spoken());
  } catch (const InputError& refusal) {
    fail(refusal.what());
  }
}

Time Cursor::duration() const {
  return parsed([&](const std::string& text) {
    try {
      return parse_duration(text, time_unit_);
    } catch (const MissingUnit& refusal) {
      throw InputError(std::string(refusal.what()) + ", or say units: {time: ms} once");
    }
  });
}

Bytes Cursor::size() const {
  return parsed(parse_size);
}

double Cursor::rate() const {
  return parsed(parse_rate);
}

double Cursor::factor(const FactorRange& range) const {
  return parsed([&](const std::string& text) { return parse_factor(text, range); });
}

std::int64_t Cursor::integer(std::int64_t least, std::int64_t most) const {
  const std::int64_t value =
      parsed([&](const std::string& text) { return parse_integer(text, least, most); });
  if (node_->quoted) fail(fmt::format("\"{}\" is text; write {} without quotes", value, value));
  return value;
}

bool Cursor::boolean() const {
  const std::string_view value = choice({"true", "false"});
  if (node_->quoted) fail(fmt::format("\"{}\" is text; write {} without quotes", value, value));
  return value == "true";
}

std::string Cursor::text(std::string_view what) const {
  if (node_->kind != Kind::scalar || node_->text.empty()) {
    fail(fmt::format("{} is not {}", shown(spoken()), what));
  }
  return node_->text;
}

std::string_view Cursor::choice(const std::vector<std::string_view>& words) const {
  for (const std::string_view word : words) {
    if (node_->kind == Kind::scalar && (node_->text == word || is_spelling(node_->text, word))) {
      return word;
    }
  }
  const std::string given = spoken();
  const std::string rule = fmt::format("{} is not one of {}", shown(given), fmt::join(words, ", "));
  if (node_->kind != Kind::scalar) fail(rule);
  const std::vector<std::string_view> likely = guesses(given, words);
  if (likely.empty()) fail(rule);
  fail(fmt::format("{}; did you mean {}?", rule, fmt::join(likely, " or ")));
}

}  // namespace counterflow

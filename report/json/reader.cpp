#include "report/json/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "scheduler/error.h"

namespace counterflow::json {
namespace {

using Json = nlohmann::json;

// What a value is, shortly, for messages.
std::string described(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// The whole number a value is, if it is one that fits.
std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(kMaxInteger)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

std::string integer_wanted(std::int64_t least, std::int64_t most, const Json& value) {
  if (most < least)
    return fmt::format("{} names something, but there is nothing to name", value.dump());
  return fmt::format("expected a whole number from {} to {}, found {}", least, most,
                     described(value));
}

// Takes a number of digits only from the front of `text`.
std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t most) {
  std::int64_t value = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value > most) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<OpKind> kind_with_token(std::string_view text) {
  for (int i = 1; i <= static_cast<int>(kLastOpKind); ++i) {
    if (token(static_cast<OpKind>(i)) == text) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

// What the writer makes of an op: each letter means itself, whatever stands beside it.
std::optional<Op> op_named(std::string_view text) {
  Op op;
  if (text.empty()) return op;
  if (const auto tilde = text.find('~'); tilde != std::string_view::npos) {
    const auto replica = tilde == 0 ? 1 : take_number(text, kMaxReplicas - 1);
    if (!replica || text.front() != '~') return std::nullopt;
    op.replica = static_cast<std::uint8_t>(*replica);
    text.remove_prefix(1);
  }
  const auto stage = take_number(text, kMaxStages);
  if (!stage) return std::nullopt;
  op.stage = static_cast<std::uint16_t>(*stage);
  const std::size_t letters = std::min(text.find_first_of("0123456789"), text.size());
  const auto kind = kind_with_token(text.substr(0, letters));
  if (!kind) return std::nullopt;
  op.kind = *kind;
  text.remove_prefix(letters);
  if (has_microbatch(op.kind)) {
    const auto microbatch = take_number(text, std::numeric_limits<Microbatch>::max());
    if (!microbatch) return std::nullopt;
    op.microbatch = static_cast<Microbatch>(*microbatch);
  } else if (!text.empty()) {
    const auto bucket = take_number(text, kMaxMicrobatches);
    if (!bucket) return std::nullopt;
    op.microbatch = static_cast<Microbatch>(*bucket);
  }
  if (!text.empty()) return std::nullopt;
  return op;
}

SourceLocation location_of(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return {file, static_cast<int>(lines) + 1, static_cast<int>(column)};
}

// Objects to a key that an object has twice: readers differ in which of the two counts.
class KeysOnce {
 public:
  explicit KeysOnce(const std::string& file) : file_(file) {}

  bool operator()(int /*depth*/, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key) add(value.get_ref<const std::string&>());
    return true;
  }

 private:
  struct Object {
    std::set<std::string> keys;
    std::string last;  // the value being read is its
  };

  void add(const std::string& key) {
    Object& object = open_.back();
    if (!object.keys.insert(key).second) {
      std::string path;
      for (const Object& each : open_) {
        if (&each != &object) path += each.last + ": ";
      }
      throw InputError({file_, 0, 0},
                       fmt::format("{}the key \"{}\" is given twice; leave one out", path, key));
    }
    object.last = key;
  }

  const std::string& file_;
  std::vector<Object> open_;  // objects around the place being read, the innermost last
};

// "ranks[1].streams" of a value that is in a document, "" of the document itself.
std::string path_of(const Json& document, const Json& wanted) {
  struct Open {
    const Json& container;
    Json::const_iterator next;
  };
  if (&document == &wanted) return {};
  std::vector<Open> open = {{document, document.begin()}};
  while (!open.empty() && &*open.back().next != &wanted) {
    Open& top = open.back();
    if (top.next->is_structured() && !top.next->empty()) {
      open.push_back({*top.next, top.next->begin()});
      continue;
    }
    while (!open.empty() && ++open.back().next == open.back().container.end()) open.pop_back();
  }
  std::string path;
  for (const Open& each : open) {
    if (each.container.is_array()) {
      path += fmt::format("[{}]", each.next - each.container.begin());
    } else {
      path += (path.empty() ? "" : ".") + each.next.key();
    }
  }
  return path;
}

}  // namespace

Json parse(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text, KeysOnce(file));
  } catch (const Json::parse_error& error) {
    throw InputError(location_of(text, error.byte, file),
                     "not JSON from here on; write the file again with counterflow");
  } catch (const Json::exception&) {
    throw InputError({file, 0, 0}, "a number in it is out of range");
  }
}

Node Node::at(std::string_view key) const {
  if (!value_.is_object()) fail("expected an object, found " + described(value_));
  const auto member = value_.find(key);
  if (member == value_.end()) fail(fmt::format("the key \"{}\" is missing", key));
  return {*member, document_};
}

Node Node::at(std::size_t index) const {
  if (index >= size()) fail(fmt::format("there is no element {}", index));
  return {value_[index], document_};
}

bool Node::has(std::string_view key) const {
  return value_.is_object() && value_.contains(key);
}

bool Node::is_null() const {
  return value_.is_null();
}

std::size_t Node::size() const {
  if (!value_.is_array()) fail("expected an array, found " + described(value_));
  return value_.size();
}

std::int64_t Node::integer(std::int64_t least, std::int64_t most) const {
  const auto number = as_integer(value_);
  if (!number || *number < least || *number > most) fail(integer_wanted(least, most, value_));
  return *number;
}

double Node::number() const {
  if (!value_.is_number()) fail("expected a number, found " + described(value_));
  return value_.get<double>();
}

bool Node::boolean() const {
  if (!value_.is_boolean()) fail("expected true or false, found " + described(value_));
  return value_.get<bool>();
}

std::string Node::text() const {
  if (!value_.is_string()) fail("expected a string, found " + described(value_));
  return value_.get<std::string>();
}

void Node::fail(const std::string& message) const {
  const std::string path = path_of(document_->root, value_);
  throw InputError({document_->file, 0, 0}, path.empty() ? message : path + ": " + message);
}

Row::Row(const Node& table, std::size_t row, std::size_t columns) : table_(table), row_(row) {
  const Json& values = table.value_[row];
  if (!values.is_array() || values.size() != columns) {
    table.at(row).fail(
        fmt::format("expected an array of {} values, found {}", columns, described(values)));
  }
}

const Json& Row::next() {
  return table_.value_[row_][column_++];
}

std::int64_t Row::integer(std::int64_t least, std::int64_t most) {
  const Json& value = next();
  const auto number = as_integer(value);
  if (!number || *number < least || *number > most) fail(integer_wanted(least, most, value));
  return *number;
}

const std::string& Row::text() {
  const Json& value = next();
  if (!value.is_string()) fail("expected a string, found " + described(value));
  return value.get_ref<const std::string&>();
}

Op Row::op() {
  const std::string& word = text();
  const auto op = op_named(word);
  if (!op) fail("'" + word + "' is no op; one is written like 0F3, ~2B1 or 1SEND_F2");
  return *op;
}

void Row::ops(std::vector<Op>& out) {
  std::string_view rest = text();
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find(';'), rest.size());
    const auto op = op_named(rest.substr(0, length));
    if (!op || op->kind == OpKind::none) fail("an op is written like 0F3, several like 0F3;3B1");
    out.push_back(*op);
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
}

void Row::fail(const std::string& message) const {
  table_.at(row_).at(column_ - 1).fail(message);
}

std::string either(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

}  // namespace counterflow::json

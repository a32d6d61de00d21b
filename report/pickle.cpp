#include "report/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/error.h"

namespace counterflow {
namespace {

using nlohmann::json;

constexpr int kDeepest = 64;
// What is named twice is written out twice: stack frames are, and what stands in them.
constexpr std::size_t kMostValues = 10'000'000;
constexpr std::size_t kValuesAByte = 16;
constexpr std::size_t kMostText = std::size_t{1} << 28U;
constexpr std::size_t kTextAByte = 256;
constexpr std::size_t kSmall = std::size_t{1} << 16U;  // bytes of a file that may be all references

// What Python's pickletools calls the opcodes that are known and not taken.
std::string_view refused_name(std::uint8_t opcode) {
  switch (opcode) {
    case 'c':
      return "GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x81:
      return "NEWOBJ";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x93:
      return "STACK_GLOBAL";
    default:
      return {};
  }
}

// A value; containers name theirs by index, so that what is named twice is kept once.
struct Value {
  enum class Kind : std::uint8_t { scalar, text, list, dict } kind = Kind::scalar;
  json scalar{};
  std::string_view text{};
  std::vector<std::uint32_t> items{};  // of a dict keys and values in turn
};

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file)
      : bytes_(bytes),
        file_(file),
        most_values_(std::min(kMostValues, kValuesAByte * std::max(bytes.size(), kSmall))),
        most_text_(std::min(kMostText, kTextAByte * std::max(bytes.size(), kSmall))) {}

  json read() {
    while (step()) {
    }
    const std::uint32_t top = pop();
    if (!stack_.empty() || !marks_.empty()) fail("more than one value is left at the end");
    extents_.resize(values_.size());
    (void)measure(top, 0);
    return written_out(top);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError({file_, 0, 0},
                     fmt::format("byte {}: {}; a flight record is a pickle of dicts, lists, texts "
                                 "and numbers alone, as PyTorch or `counterflow run` dumps it",
                                 begin_, what));
  }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) fail("the file ends too early: write it again");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    const std::string_view raw = take(width);
    for (std::size_t i = 0; i < width; ++i) {
      value |= std::uint64_t{static_cast<std::uint8_t>(raw[i])} << (8 * i);
    }
    return value;
  }

  std::int64_t long_number() {
    const auto width = static_cast<std::size_t>(number(1));
    if (width > 8) fail("a whole number of more than 64 bits");
    if (width == 0) return 0;
    const std::size_t unused = 64 - 8 * width;
    return static_cast<std::int64_t>(number(width) << unused) >> unused;
  }

  double real() {
    std::uint64_t bits = 0;  // most significant byte first, unlike all else
    for (const char each : take(8)) bits = bits << 8U | static_cast<std::uint8_t>(each);
    return std::bit_cast<double>(bits);
  }

  // ---- The stack ------------------------------------------------------------------------------

  void push(Value value) {
    if (values_.size() >= kMostValues) fail("more than ten million values");
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<std::uint32_t>(values_.size() - 1));
  }
  void push_scalar(json scalar) { push({.scalar = std::move(scalar)}); }
  void push_text(std::uint64_t size) { push({.kind = Value::Kind::text, .text = take(size)}); }

  // What stands above the last mark stays there: it belongs to what is being filled.
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  std::uint32_t pop() {
    if (stack_.size() <= floor()) fail("there is no value on the stack");
    const std::uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }

  std::vector<std::uint32_t> pop_to_mark() {
    if (marks_.empty()) fail("there is no mark on the stack");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<std::uint32_t> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }

  std::vector<std::uint32_t> pop_some(std::size_t count) {
    std::vector<std::uint32_t> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  // Into the container on top of the stack.
  void extend(Value::Kind kind, const std::vector<std::uint32_t>& items) {
    if (stack_.size() <= floor()) fail("there is nothing to put values into");
    Value& container = values_[stack_.back()];
    const bool is_dict = kind == Value::Kind::dict;
    if (container.kind != kind) fail(fmt::format("it is no {}", is_dict ? "dict" : "list"));
    if (is_dict && items.size() % 2 != 0) fail("a key without a value");
    container.items.insert(container.items.end(), items.begin(), items.end());
  }

  void remember(std::uint64_t number) {
    if (stack_.size() <= floor()) fail("there is no value to remember");
    memo_[number] = stack_.back();
  }
  void recall(std::uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) fail(fmt::format("it names value {}, which is not there", number));
    stack_.push_back(found->second);
  }

  // ---- Opcodes --------------------------------------------------------------------------------

  // Does one; false at the end.
  bool step() {
    begin_ = at_;
    const auto opcode = static_cast<std::uint8_t>(take(1).front());
    if (opcode == '.') return false;  // STOP
    if (std::max({stack_.size(), marks_.size(), memo_.size()}) >= kMostValues) {
      fail("more than ten million values");
    }
    if (!scalar(opcode) && !container(opcode) && !housekeeping(opcode)) refuse(opcode);
    return true;
  }

  [[noreturn]] void refuse(std::uint8_t opcode) const {
    if (const std::string_view name = refused_name(opcode); !name.empty()) {
      fail(fmt::format("opcode {} would make Python run code, and is refused", name));
    }
    fail(fmt::format("opcode 0x{:02x} is not taken", opcode));
  }

  bool scalar(std::uint8_t opcode) {
    switch (opcode) {
      case 'N':
        return push_scalar(nullptr), true;
      case 0x88:
        return push_scalar(true), true;
      case 0x89:
        return push_scalar(false), true;
      case 'K':
        return push_scalar(static_cast<std::int64_t>(number(1))), true;
      case 'M':
        return push_scalar(static_cast<std::int64_t>(number(2))), true;
      case 'J':
        return push_scalar(std::int64_t{static_cast<std::int32_t>(number(4))}), true;
      case 0x8a:
        return push_scalar(long_number()), true;
      case 'G':
        return push_scalar(real()), true;
      case 0x8c:
        return push_text(number(1)), true;
      case 'X':
        return push_text(number(4)), true;
      case 0x8d:
        return push_text(number(8)), true;
      default:
        return false;
    }
  }

  bool container(std::uint8_t opcode) {
    using Kind = Value::Kind;
    switch (opcode) {
      case '}':
        return push({.kind = Kind::dict}), true;
      case ']':
      case ')':
        return push({.kind = Kind::list}), true;
      case 'a':
        return extend(Kind::list, pop_some(1)), true;
      case 'e':
        return extend(Kind::list, pop_to_mark()), true;
      case 's':
        return extend(Kind::dict, pop_some(2)), true;
      case 'u':
        return extend(Kind::dict, pop_to_mark()), true;
      case 't':
        return push({.kind = Kind::list, .items = pop_to_mark()}), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return push({.kind = Kind::list, .items = pop_some(opcode - std::size_t{0x84})}), true;
      default:
        return false;
    }
  }

  bool housekeeping(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80:
        if (const std::uint64_t protocol = number(1); protocol < 2 || protocol > 5) {
          fail(fmt::format("protocol {} is not taken, only 2 to 5", protocol));
        }
        return true;
      case 0x95:
        return (void)number(8), true;  // FRAME
      case '(':
        return marks_.push_back(stack_.size()), true;
      case 'q':
        return remember(number(1)), true;
      case 'r':
        return remember(number(4)), true;
      case 0x94:
        return remember(memo_.size()), true;
      case 'h':
        return recall(number(1)), true;
      case 'j':
        return recall(number(4)), true;
      default:
        return false;
    }
  }

  // ---- Values ---------------------------------------------------------------------------------

  // How much a value is once what it names twice is written twice.
  struct Extent {
    std::size_t values = 0;  // 0: not known yet
    std::size_t text = 0;
  };

  // Fails where it is too much. Every value is looked at once.
  Extent measure(std::uint32_t index, int depth) {
    if (depth > kDeepest) fail("values nest deeper than 64, or contain themselves");
    if (extents_[index].values > 0) return extents_[index];
    const Value& value = values_[index];
    Extent extent{1, value.text.size()};
    for (const std::uint32_t item : value.items) {
      const Extent of_item = measure(item, depth + 1);
      extent.values += of_item.values;
      extent.text += of_item.text;
      if (extent.values > most_values_) {
        fail(fmt::format("more than {} values once what is named twice is written twice",
                         most_values_));
      }
      if (extent.text > most_text_) {
        fail(fmt::format("more than {} bytes of text once what is named twice is written twice",
                         most_text_));
      }
    }
    return extents_[index] = extent;
  }

  json written_out(std::uint32_t index) {
    const Value& value = values_[index];
    if (value.kind == Value::Kind::scalar) return value.scalar;
    if (value.kind == Value::Kind::text) return std::string(value.text);
    if (value.kind == Value::Kind::list) {
      json list = json::array();
      for (const std::uint32_t item : value.items) list.push_back(written_out(item));
      return list;
    }
    json dict = json::object();
    for (std::size_t i = 0; i < value.items.size(); i += 2) {
      const Value& key = values_[value.items[i]];
      if (key.kind != Value::Kind::text) fail("a key that is no text");
      dict[std::string(key.text)] = written_out(value.items[i + 1]);
    }
    return dict;
  }

  const std::string_view bytes_;
  const std::string& file_;
  const std::size_t most_values_;
  const std::size_t most_text_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  // of the opcode
  std::vector<Value> values_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, std::uint32_t> memo_;
  std::vector<Extent> extents_;  // [value]
};

}  // namespace

nlohmann::json parse_pickle(std::string_view bytes, const std::string& file) {
  return Reader(bytes, file).read();
}

}  // namespace counterflow

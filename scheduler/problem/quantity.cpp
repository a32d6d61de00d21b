#include "scheduler/problem/quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/problem/config.h"
#include "scheduler/problem/guess.h"
#include "scheduler/problem/text.h"

namespace counterflow {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t scale;  // in the base unit: ns, bytes, bytes a second
};

constexpr Unit kTimeUnits[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kK = 1000;
constexpr Unit kSizeUnits[] = {{"B", 1},
                               {"KiB", kKi},
                               {"MiB", kKi* kKi},
                               {"GiB", kKi* kKi* kKi},
                               {"TiB", kKi* kKi* kKi* kKi},
                               {"KB", kK},
                               {"MB", kK* kK},
                               {"GB", kK* kK* kK},
                               {"TB", kK* kK* kK* kK}};
constexpr Unit kRateUnits[] = {{"B/s", 1},
                               {"KB/s", kK},
                               {"MB/s", kK* kK},
                               {"GB/s", kK* kK* kK},
                               {"TB/s", kK* kK* kK* kK},
                               {"KiB/s", kKi},
                               {"MiB/s", kKi* kKi},
                               {"GiB/s", kKi* kKi* kKi},
                               {"TiB/s", kKi* kKi* kKi* kKi},
                               {"Kb/s", kK / 8},
                               {"Mb/s", kK* kK / 8},
                               {"Gb/s", kK* kK* kK / 8},
                               {"Tb/s", kK* kK* kK* kK / 8}};

// A kind of quantity, in words for messages.
struct Quantity {
  std::string_view name;  // "a duration"
  std::string_view example;
  std::string_view rule;  // what it must be, after "is negative; "
  std::span<const Unit> units;
  std::string_view usual_unit;
};

constexpr Quantity kDuration = {"a duration", "18.522ms", "a duration is zero or more", kTimeUnits,
                                "ms"};
constexpr Quantity kSize = {"a size", "100MiB", "a size is zero or more", kSizeUnits, "MiB"};
constexpr Quantity kRate = {"a rate", "50GB/s", "a rate is above zero", kRateUnits, "GB/s"};

constexpr double kMostRate = 1e30;

std::vector<std::string_view> names_of(std::span<const Unit> units) {
  std::vector<std::string_view> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  return names;
}

// digits * 10^exponent, exact for the first 19 significant digits.
struct Decimal {
  std::string_view text;  // of the number, for the parsers of the standard library
  bool negative = false;
  std::uint64_t digits = 0;
  int exponent = 0;
};

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) -
                                  text.begin());
}

void add_digits(Decimal& number, std::string_view digits, bool fraction) {
  constexpr std::uint64_t kFull = 1'000'000'000'000'000'000;
  for (const char c : digits) {
    if (number.digits >= kFull) {
      number.exponent += fraction ? 0 : 1;
      continue;
    }
    number.digits = number.digits * 10 + static_cast<std::uint64_t>(c - '0');
    number.exponent -= fraction ? 1 : 0;
  }
}

// Takes an exponent ("e-3") off the front of `rest`, if one stands there.
int take_exponent(std::string_view& rest) {
  if (rest.empty() || (rest[0] != 'e' && rest[0] != 'E')) return 0;
  std::size_t sign = 1;
  if (rest.size() > 1 && (rest[1] == '+' || rest[1] == '-')) sign = 2;
  const std::size_t length = count_digits(rest.substr(sign));
  if (length == 0) return 0;
  constexpr int kBeyondAnything = 100'000;
  int value = 0;
  for (const char c : rest.substr(sign, length)) {
    value = std::min(value * 10 + (c - '0'), kBeyondAnything);
  }
  const bool negative = rest[1] == '-';
  rest.remove_prefix(sign + length);
  return negative ? -value : value;
}

// Takes a decimal number off the front of `text`, which keeps the rest: [-] digits [. digits]
// [e [+-] digits], no leading zeros. Nothing if there is none.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  std::string_view rest = text;
  if (!rest.empty() && rest[0] == '-') {
    number.negative = true;
    rest.remove_prefix(1);
  }
  const std::size_t whole = count_digits(rest);
  if (whole == 0 || (whole > 1 && rest[0] == '0')) return std::nullopt;
  add_digits(number, rest.substr(0, whole), false);
  rest.remove_prefix(whole);
  if (!rest.empty() && rest[0] == '.') {
    const std::size_t fraction = count_digits(rest.substr(1));
    if (fraction == 0) return std::nullopt;
    add_digits(number, rest.substr(1, fraction), true);
    rest.remove_prefix(1 + fraction);
  }
  number.exponent += take_exponent(rest);
  number.text = text.substr(0, text.size() - rest.size());
  text = rest;
  return number;
}

// number * scale, rounded half up; nothing if it is not below the limit of totals.
std::optional<std::int64_t> times(const Decimal& number, std::int64_t scale) {
  __extension__ using Wide = unsigned __int128;
  constexpr int kMostShift = 38;  // 10^38 still fits
  constexpr auto kLimit = static_cast<Wide>(kMaxTotal);
  Wide value = static_cast<Wide>(number.digits) * static_cast<Wide>(scale);
  if (value == 0 || number.exponent < -kMostShift) return 0;
  for (int e = number.exponent; e > 0 && value < kLimit; --e) value *= 10;
  Wide divisor = 1;
  for (int e = number.exponent; e < 0; ++e) divisor *= 10;
  value = (value + divisor / 2) / divisor;
  if (value >= kLimit) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw InputError(fmt::format("{} {}", shown(text), why));
}

// A number and the text after it.
struct Measure {
  Decimal number;
  std::string_view unit;
};

Measure parse_measure(std::string_view text, const Quantity& kind) {
  std::string_view rest = text;
  const std::optional<Decimal> number = take_decimal(rest);
  if (!number) {
    refuse(text, fmt::format("is not {}; write a decimal number with a unit, for example {}",
                             kind.name, kind.example));
  }
  if (number->negative && number->digits != 0) {
    refuse(text, fmt::format("is negative; {}, for example {}", kind.rule, kind.example));
  }
  while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  return {*number, rest};
}

std::int64_t scale_of(std::string_view text, std::string_view unit, const Quantity& kind) {
  for (const Unit& known : kind.units) {
    if (known.name == unit) return known.scale;
  }
  const std::vector<std::string_view> names = names_of(kind.units);
  const std::vector<std::string_view> likely = guesses(unit, names);
  const std::string hint =
      likely.empty() ? "; the" : fmt::format("; did you mean {}? The", fmt::join(likely, " or "));
  refuse(text, fmt::format("has the unknown unit {}{} units of {} are {}", shown(unit), hint,
                           kind.name, fmt::join(names, ", ")));
}

[[noreturn]] void refuse_without_unit(std::string_view text, const Quantity& kind) {
  throw MissingUnit(fmt::format("{0} has no unit; write one of {1} after it, for example {0}{2}",
                                shown(text), fmt::join(names_of(kind.units), ", "),
                                kind.usual_unit));
}

// The number in the base unit of its kind; "0" needs no unit.
std::int64_t parse_whole(std::string_view text, const Quantity& kind, std::string_view bare_unit) {
  const Measure measure = parse_measure(text, kind);
  const std::string_view unit = measure.unit.empty() ? bare_unit : measure.unit;
  if (unit.empty()) {
    if (measure.number.digits == 0) return 0;
    refuse_without_unit(text, kind);
  }
  const auto value = times(measure.number, scale_of(text, unit, kind));
  if (!value) {
    refuse(text, fmt::format("is too large; {} is below 2^62 {}, for example {}", kind.name,
                             kind.units.front().name, kind.example));
  }
  return *value;
}

// The number as the nearest double; nothing if it is beyond every double.
std::optional<double> to_double(const Decimal& number) {
  double value = 0;
  const char* const end = number.text.data() + number.text.size();
  if (std::from_chars(number.text.data(), end, value).ec == std::errc()) return value;
  if (number.digits != 0 && number.exponent > 0) return std::nullopt;
  return 0.0;
}

}  // namespace

Time parse_duration(std::string_view text, std::string_view bare_unit) {
  return Time{parse_whole(text, kDuration, bare_unit)};
}

Bytes parse_size(std::string_view text) {
  return {parse_whole(text, kSize, {})};
}

double parse_rate(std::string_view text) {
  const Measure measure = parse_measure(text, kRate);
  const auto value = to_double(measure.number);
  // Before its unit: none would make it right.
  if (value && *value <= 0) {
    refuse(text, "is zero; a rate is above zero, for example 50GB/s; leave it out for no limit");
  }
  if (measure.unit.empty()) refuse_without_unit(text, kRate);
  const auto scale = static_cast<double>(scale_of(text, measure.unit, kRate));
  const double rate = value.value_or(kMostRate) * scale;
  if (rate >= kMostRate) {
    refuse(text, "is too large; a rate is below 1e30 B/s, for example 50GB/s");
  }
  return rate;
}

double parse_factor(std::string_view text, const FactorRange& range) {
  const auto refuse_as = [&](std::string_view what) {
    refuse(text, fmt::format("is {}; {}, for example {}", what, range.rule, range.example));
  };
  std::string_view rest = text;
  const std::optional<Decimal> number = take_decimal(rest);
  if (!number || !rest.empty()) refuse_as("not a number");
  if (number->negative && number->digits != 0) refuse_as("negative");
  const double value = std::abs(to_double(*number).value_or(HUGE_VAL));
  if (value < range.least) refuse_as("too small");
  if (value > range.most) refuse_as("too large");
  return value;
}

std::int64_t parse_integer(std::string_view text, std::int64_t least, std::int64_t most) {
  std::string_view rest = text;
  const std::optional<Decimal> number = take_decimal(rest);
  if (!number || !rest.empty() || number->text.find_first_of(".eE") != std::string_view::npos) {
    refuse(text, fmt::format("is not a whole number; write one from {} to {}", least, most));
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const bool fits = std::from_chars(text.data(), end, value).ec == std::errc();
  if (!fits || value < least || value > most) {
    refuse(text, fmt::format("is out of range; write a whole number from {} to {}", least, most));
  }
  return value;
}

}  // namespace counterflow

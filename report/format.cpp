#include "report/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace counterflow {
namespace {

// Four significant digits without trailing zeros.
std::string four_digits(double value) {
  const double magnitude = std::abs(value);
  const int decimals = magnitude >= 999.95   ? 0
                       : magnitude >= 99.995 ? 1
                       : magnitude >= 9.9995 ? 2
                                             : 3;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

template <std::size_t n>
std::string scaled(std::int64_t value, double step, const std::array<std::string_view, n>& units) {
  double rest = static_cast<double>(value);
  std::size_t unit = 0;
  while (unit + 1 < n && std::abs(rest) >= step) {
    rest /= step;
    ++unit;
  }
  return fmt::format("{} {}", four_digits(rest), units[unit]);
}

}  // namespace

std::string readable_time(Time time) {
  constexpr std::array<std::string_view, 4> units = {"ns", "us", "ms", "s"};
  return scaled(time.count(), 1000, units);
}

std::string readable_bytes(Bytes bytes) {
  constexpr std::array<std::string_view, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(bytes.value, 1024, units);
}

std::string readable_list(const std::vector<int>& numbers) {
  if (numbers.empty()) return "-";
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", numbers[i]);
    if (last > i) text += fmt::format("{}{}", last > i + 1 ? "-" : ", ", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string readable_share(double fraction) {
  return fmt::format("{:.2f} %", 100 * fraction);
}

}  // namespace counterflow

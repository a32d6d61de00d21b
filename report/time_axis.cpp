#include "report/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace counterflow {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::array<Unit, 4> kUnits = {
    {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};

std::int64_t round_step(std::int64_t length, int wanted) {
  const std::int64_t least = std::max<std::int64_t>((length + wanted - 1) / wanted, 1);
  std::int64_t power = 1;
  while (power <= least / 10) power *= 10;
  for (const std::int64_t factor : {1, 2, 5}) {
    if (power * factor >= least) return power * factor;
  }
  return power * 10;
}

// The largest unit in which the last tick is at least 1.
Unit unit_of(std::int64_t length) {
  for (const Unit& unit : kUnits) {
    if (length >= unit.nanoseconds) return unit;
  }
  return kUnits.back();
}

std::string number(std::int64_t value, const Unit& unit, std::int64_t step) {
  int decimals = 0;
  for (std::int64_t rest = unit.nanoseconds; step % rest != 0 && rest > 1; rest /= 10) ++decimals;
  return fmt::format("{:.{}f}", static_cast<double>(value) / static_cast<double>(unit.nanoseconds),
                     decimals);
}

}  // namespace

std::vector<Tick> ticks(Time begin, Time end, int wanted) {
  const std::int64_t step = round_step((end - begin).count(), wanted);
  const std::int64_t last = end.count() / step * step;
  const Unit unit = unit_of(std::max(last, step));
  std::vector<Tick> out;
  for (std::int64_t at = -(-begin.count() / step) * step; at <= last; at += step) {
    out.push_back({Time{at}, number(at, unit, step)});
  }
  if (!out.empty()) out.back().label += fmt::format(" {}", unit.name);
  return out;
}

}  // namespace counterflow

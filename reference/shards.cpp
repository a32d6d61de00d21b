#include "reference/shards.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/graph/part.h"

namespace counterflow::reference {
namespace {

std::size_t elements(Bytes size) {
  return static_cast<std::size_t>(size.value) / sizeof(float);
}

Segment part(Bytes whole, std::size_t k, std::size_t n) {
  const Part own = part_of(whole, k, n);
  return {elements(own.first), elements(own.size)};
}

// Slots begin on multiples of 256 B in storage that new made.
std::span<float> values(exec::Buffer buffer) {
  return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

}  // namespace

Segment segment_of(const GradientSums& sums, Stage stage, GradientSums::Id id) {
  Segment segment;
  for (const GradientSums::Id each : sums.of(stage)) {
    segment.count = elements(sums[each].size);
    if (each == id) break;
    segment.first += segment.count;
  }
  return segment;
}

bool all_finite(std::span<const float> values, std::span<const Segment> where) {
  return std::ranges::all_of(where, [&](const Segment& s) {
    return std::ranges::all_of(values.subspan(s.first, s.count),
                               [](float value) { return std::isfinite(value); });
  });
}

Shards::Shards(const Problem& problem, const GradientSums& sums)
    : problem_(problem), sums_(sums), parameters_(problem, sums) {}

std::vector<Segment> Shards::owned(Stage stage, Rank rank, std::size_t parameters) const {
  if (!any()) return {{0, parameters}};
  std::vector<Segment> all;
  std::size_t first = 0;
  for (const Bytes unit : parameters_.units(stage)) {
    const Segment own =
        part(unit, parameters_.number(stage, rank), parameters_.holders(stage).size());
    if (own.count > 0) all.push_back({first + own.first, own.count});
    first += elements(unit);
  }
  return all;
}

std::vector<std::vector<Segment>> Shards::pieces(Stage stage, std::size_t parameters) const {
  if (!any()) return {{{0, parameters}}};
  std::vector<std::vector<Segment>> all;
  for (const Rank rank : parameters_.holders(stage)) all.push_back(owned(stage, rank, parameters));
  return all;
}

Segment Shards::reduced(GradientSums::Id id, Rank rank) const {
  const GradientSums::Sum& sum = sums_[id];
  if (!sum.is_scattered) return {0, elements(sum.size)};
  const auto holder = std::ranges::lower_bound(sum.holders, rank) - sum.holders.begin();
  return part(sum.size, static_cast<std::size_t>(holder), sum.holders.size());
}

void Shards::copy_in(Stage stage, Rank rank, std::span<const float> parameters,
                     std::span<const exec::Buffer> units) const {
  free(units);
  const std::size_t holder = parameters_.number(stage, rank);
  for (const exec::Buffer& unit : units) {
    const std::span<float> whole = values(unit);
    const Segment own = part(Bytes{std::ssize(unit)}, holder, parameters_.holders(stage).size());
    std::ranges::copy(parameters.subspan(own.first, own.count),
                      whole.subspan(own.first, own.count).begin());
    parameters = parameters.subspan(whole.size());
  }
}

std::vector<float> Shards::copy_out(std::span<const exec::Buffer> units) {
  std::vector<float> whole;
  for (const exec::Buffer& unit : units) {
    const auto part = values(unit);
    whole.insert(whole.end(), part.begin(), part.end());
  }
  return whole;
}

void Shards::free(std::span<const exec::Buffer> units) {
  for (const exec::Buffer& unit : units) {
    std::ranges::fill(values(unit), std::numeric_limits<float>::quiet_NaN());
  }
}

}  // namespace counterflow::reference

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace counterflow::reference {

// Uniform in [-1, 1): number `index` of series `series` under a seed. A function of its arguments
// and of nothing else, so every process of a run finds the same weights and the same data.
// SplitMix64's finaliser over a counter.
[[nodiscard]] inline double uniform(std::uint64_t seed, std::uint64_t series, std::uint64_t index) {
  const auto mix = [](std::uint64_t z) {
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  };
  const std::uint64_t bits = mix(mix(mix(seed) ^ series) ^ index) >> 11U;
  return static_cast<double>(bits) * 0x1p-52 - 1;
}

// Fills with numbers 0, 1, ... of a series, times `scale`.
template <typename T>
void fill_uniform(std::span<T> values, std::uint64_t seed, std::uint64_t series, double scale) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(uniform(seed, series, i) * scale);
  }
}

}  // namespace counterflow::reference

#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace counterflow {

// Every duration and instant is a whole number of nanoseconds; a value is rounded once, when read.
// Instants count from the start of the step.
using Time = std::chrono::nanoseconds;

// A size in bytes. A type of its own, so that bytes and nanoseconds cannot be mixed up.
struct Bytes {
  std::int64_t value = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
  constexpr Bytes& operator+=(Bytes other) {
    value += other.value;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    value -= other.value;
    return *this;
  }
};

// Indices. Ranks are 0..p-1, stages 0..S-1, microbatches 0..m-1 (global over both directions).
using Rank = std::int32_t;
using Stage = std::int32_t;
using Microbatch = std::int32_t;

}  // namespace counterflow

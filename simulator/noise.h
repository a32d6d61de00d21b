#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/problem/jitter.h"
#include "simulator/wiring.h"

namespace counterflow::sim {

// A counter-based generator: the number drawn for (seed, trial, key) depends on nothing else, so
// neither on threads nor on the order of draws. The mixing is that of splitmix64 (Steele, Lea,
// Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}
// 53 bits as a number in (0, 1), never at an end.
[[nodiscard]] constexpr double unit(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11U) + 0.5) * 0x1p-53;
}
// The standard normal deviate below which this share of all lie; relative error 1.2e-9 (P. J.
// Acklam's rational approximation). Only +, -, *, / and, in the tails, log and sqrt.
[[nodiscard]] double normal_quantile(double share);
// A spread in the form that draws ask for.
class Sampler {
 public:
  explicit Sampler(const Spread& spread);
  // The factor that this draw from (0, 1) means: at least 0, and of mean 1 but for `exponential`,
  // whose mean is 1 + sigma.
  [[nodiscard]] double factor(double draw) const;
  [[nodiscard]] bool varies() const { return spread_.sigma > 0; }
  [[nodiscard]] const Spread& spread() const { return spread_; }

 private:
  Spread spread_;
  double scale_ = 0;  // of the normal, uniform or exponential deviate
  double shift_ = 0;  // lognormal: of the exponent
};

// Draws of everything that varies in a program. A draw belongs to what is done, not to where it
// stands: an op, or a message by its payload. So two orders of the same work meet the same
// conditions in the same trial, and comparing them compares the orders. A fused pair varies with
// its forward.
class Noise {
 public:
  // The wiring must outlive it. O(instructions + messages).
  Noise(const Wiring& wiring, const Jitter& jitter, std::uint64_t seed);

  // One rank's computes, or one pair's messages, slower by a factor on top.
  struct Perturbation {
    enum class What : std::uint8_t { nothing, rank, link };
    What what = What::nothing;
    Rank from = 0;  // or the rank
    Rank to = 0;
    double factor = 1;
  };
  // The loads of a trial, into vectors that are kept for the next. Safe from several threads.
  // O(instructions + messages).
  void draw(std::uint64_t trial, const Perturbation& perturbation,
            std::vector<std::int64_t>& durations, std::vector<double>& stretch) const;

 private:
  struct Source {
    std::uint64_t key = 0;     // of what is done
    std::uint32_t place = 0;   // instruction, or message
    std::uint32_t rank = 0;    // that computes, or sends
    std::uint32_t spread = 0;  // into samplers_
    std::uint32_t to = 0;      // of a message
    double slow = 1;
  };
  void add_computes(const Jitter& jitter);
  void add_messages(const Jitter& jitter);
  void add_collectives(const Jitter& jitter);
  [[nodiscard]] std::uint32_t number_of(const Spread& spread);
  [[nodiscard]] double drawn(const Source& source, std::uint64_t trial_key) const;

  const Wiring& wiring_;
  std::uint64_t seed_;
  Jitter::Stragglers stragglers_;
  std::vector<Sampler> samplers_;
  std::vector<Source> computes_, messages_, collectives_;
};

}  // namespace counterflow::sim

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/units.h"

namespace counterflow {

enum class Distribution : std::uint8_t {
  normal,       // 1 + sigma z, no less than 0
  lognormal,    // mean 1, standard deviation sigma: many small delays, few long ones
  uniform,      // 1 +- sigma sqrt(3)
  exponential,  // 1 + sigma e: never faster than its cost
};

// How the duration of one op or message varies: a factor with this standard deviation.
struct Spread {
  Distribution distribution = Distribution::normal;
  double sigma = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};

// What varies from run to run, and by how much. Everything is a factor of the given cost.
struct Jitter {
  struct OfRank {
    Rank rank = 0;
    double slow = 1;               // of all its computes, in every run
    std::optional<Spread> spread;  // of its computes, instead of the general one
  };
  struct OfLink {
    Rank from = 0;
    Rank to = 0;
    double slow = 1;  // of its messages: latency and bytes alike
    std::optional<Spread> spread;
  };
  // In each run, each rank is slow as a whole with this probability.
  struct Stragglers {
    double probability = 0;
    double slow = 1;
  };

  std::uint64_t seed = 0;
  Spread compute;
  std::vector<std::pair<OpKind, Spread>> kinds;  // of F, B, I or W, instead of `compute`
  Spread transfer;
  std::vector<OfRank> ranks;
  std::vector<OfLink> links;
  Stragglers stragglers;
};

// The same keys as a config's `jitter`, for a machine of so many ranks. Throws InputError.
[[nodiscard]] Jitter parse_jitter(std::string_view yaml, const std::string& file, int ranks);

// Does anything differ from run to run?
[[nodiscard]] bool varies(const Jitter& jitter);

// No factor drawn from this spread is larger. Draws are made from 53 random bits.
[[nodiscard]] double largest_factor(const Spread& spread);
// No cost is multiplied by more than this in any run.
[[nodiscard]] double largest_factor(const Jitter& jitter);

}  // namespace counterflow

#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/ir/units.h"

namespace counterflow {

// Durations of one stage for a microbatch of factor 1. The full backward is I then W.
struct StageCost {
  Time forward{0};
  Time backward_input{0};
  Time backward_weight{0};
  Time store{0};    // OFFLOAD, where the stage does so
  Time restore{0};  // RECOMPUTE or RELOAD, likewise
};

// How the cost of each microbatch compares with the stage's figure, kind by kind (a longer
// sequence, more images). Empty: every microbatch costs the same.
struct MicrobatchFactors {
  std::vector<double> forward;  // [microbatch], likewise below
  std::vector<double> backward_input;
  std::vector<double> backward_weight;
  std::vector<double> activation;  // bytes, and the time to copy them
};

// Durations of F(stage a) fused with B(stage b). A pair without an entry costs the default, and
// without a default the sum of its parts.
class PairCosts {
 public:
  void set_default(Time cost) { default_ = cost; }
  void set(Stage forward, Stage backward, Time cost) { table_[key(forward, backward)] = cost; }
  [[nodiscard]] bool empty() const { return default_.count() < 0 && table_.empty(); }
  // Makes every pair with a cost longer by what its two stages add. [stage]
  void add(std::vector<Time> to_forward, std::vector<Time> to_backward);
  // The cost of this pair, or -1ns where its parts count.
  [[nodiscard]] Time find(Stage forward, Stage backward) const;
  // No pair costs more; 0ns if none has a cost. O(entries + stages).
  [[nodiscard]] Time largest() const;

 private:
  static std::uint32_t key(Stage forward, Stage backward) {
    return static_cast<std::uint32_t>(forward) << 16U | static_cast<std::uint32_t>(backward);
  }
  Time default_{-1};
  std::unordered_map<std::uint32_t, Time> table_;
  std::vector<Time> to_forward_, to_backward_;  // [stage] empty: nothing is added
};

// The duration of every op and pair.
class Costs {
 public:
  Costs() = default;
  explicit Costs(std::vector<StageCost> stages, MicrobatchFactors factors = {},
                 PairCosts pairs = {})
      : stages_(std::move(stages)), factors_(std::move(factors)), pairs_(std::move(pairs)) {}

  [[nodiscard]] const std::vector<StageCost>& stages() const { return stages_; }
  [[nodiscard]] const MicrobatchFactors& factors() const { return factors_; }
  [[nodiscard]] const PairCosts& pairs() const { return pairs_; }
  // Do all microbatches cost the same?
  [[nodiscard]] bool uniform() const {
    return factors_.forward.empty() && factors_.backward_input.empty() &&
           factors_.backward_weight.empty() && factors_.activation.empty();
  }

  // Duration of one compute op, rounded to whole nanoseconds after its factor. O(1).
  [[nodiscard]] Time duration(const Op& op) const;
  // Duration of F fused with a backward: the pair's own cost, in proportion to the factors of its
  // parts, or the sum of the parts. A pair of an F with an I costs the sum, unless the stage has no
  // weight gradient: then I is all of its backward, and the pair holds where it is less.
  [[nodiscard]] Time duration(const Op& forward, const Op& backward) const;

 private:
  // The pair's own cost, -1ns if it has none.
  [[nodiscard]] Time fused(const Op& forward, const Op& backward) const;

  std::vector<StageCost> stages_;
  MicrobatchFactors factors_;
  PairCosts pairs_;
};

}  // namespace counterflow

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/problem/problem.h"

namespace counterflow {

// The sums that weight gradients are added to: of each stage its own, in buckets, and one of all
// stages that share tied parameters. Every rank that holds a copy of a contributing stage has a
// sum of its own; where they are several, they are added up when all are complete.
class GradientSums {
 public:
  using Id = std::uint32_t;
  struct Sum {
    std::vector<Stage> stages;  // that contribute, ascending
    std::uint16_t bucket = 0;   // which of the stage's own
    Bytes size;                 // 0: nothing says how large it is
    std::vector<Rank> holders;  // ascending
    // Are parameters sharded, so that each holder gets its part of the total? Not of what is tied:
    // who shares that is not who has the shards.
    bool is_scattered = false;
    [[nodiscard]] bool is_shared() const { return holders.size() > 1 && size.value > 0; }
  };

  // O(stages * replicas + sums).
  explicit GradientSums(const Problem& problem);

  [[nodiscard]] std::size_t size() const { return sums_.size(); }
  [[nodiscard]] const Sum& operator[](Id id) const { return sums_[id]; }
  // What W of the stage adds to: its own buckets, then what is tied. One of no size where the
  // problem has no optimizer, none where the stage is frozen.
  [[nodiscard]] std::span<const Id> of(Stage stage) const {
    return of_stage_[static_cast<std::size_t>(stage)];
  }
  // All that a rank holds, ascending. O(sums of the rank, sorted).
  [[nodiscard]] std::vector<Id> on(const Problem& problem, Rank rank) const;

 private:
  void add(const Problem& problem, std::vector<Stage> stages, std::uint16_t bucket, Bytes size);
  void add_buckets(const Problem& problem, Stage stage, Bytes own);

  std::vector<Sum> sums_;
  std::vector<std::vector<Id>> of_stage_;  // [stage]
};

}  // namespace counterflow

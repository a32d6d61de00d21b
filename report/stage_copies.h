#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow {

// The copies of stages that a rank computes for, numbered from 0 in the order of their first op.
class StageCopies {
 public:
  // O(instructions + stages * replicas from the rank's first to its last).
  explicit StageCopies(const RankProgram& rank) {
    for_each_op(rank, [&](const Op& op) {
      first_ = std::min(first_, op.replica);
      last_ = std::max(last_, op.replica);
    });
    for_each_op(rank, [&](const Op& op) {
      const std::size_t place = place_of(op);
      if (place >= numbers_.size()) numbers_.resize(place + 1, kNone);
      if (numbers_[place] == kNone) numbers_[place] = count_++;
    });
  }

  [[nodiscard]] std::size_t size() const { return count_; }
  // Of an op of the rank.
  [[nodiscard]] std::uint32_t of(const Op& op) const { return numbers_[place_of(op)]; }

 private:
  template <typename Each>
  static void for_each_op(const RankProgram& rank, Each each) {
    for (const Instruction& i : rank.instructions) {
      if (i.kind != InstructionKind::run) continue;
      if (i.op.kind != OpKind::none) each(i.op);
      if (i.paired.kind != OpKind::none) each(i.paired);
    }
  }
  [[nodiscard]] std::size_t place_of(const Op& op) const {
    return std::size_t{op.stage} * (std::size_t{last_} - first_ + 1) + op.replica - first_;
  }

  std::uint8_t first_ = 255;
  std::uint8_t last_ = 0;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> numbers_;  // [stage][replica from the first]
};

}  // namespace counterflow

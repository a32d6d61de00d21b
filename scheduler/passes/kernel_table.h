#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/ir/program.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// Finds or makes the kernel of a slot: ops of the same stages, kinds and costs share one.
class KernelTable {
 public:
  explicit KernelTable(const Problem& problem);

  // O(1) for single ops when all microbatches cost the same, else O(log kernels).
  [[nodiscard]] std::uint32_t of(const Slot& slot);
  [[nodiscard]] std::vector<Kernel> take() && { return std::move(kernels_); }

 private:
  [[nodiscard]] Kernel make(const Slot& slot) const;
  [[nodiscard]] std::uint32_t intern(const Kernel& kernel);

  using Key = std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;
  const Problem& problem_;
  std::size_t replicas_;
  std::vector<Kernel> kernels_;
  std::vector<std::uint32_t> single_;  // [trains][kind][replica][stage], kNone: not made yet
  std::map<Key, std::uint32_t> known_;
};

}  // namespace counterflow

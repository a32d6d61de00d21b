#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/bounds/side.h"

namespace counterflow {

// Windows of the ops that share one memory limit, tightened by what they hold.
class MemoryWindows {
 public:
  // O(ops of the limit * arcs).
  MemoryWindows(const OpNetwork& network, const OpNetwork::Store& store);

  [[nodiscard]] std::uint32_t rank() const { return store_.rank; }
  // Raises heads where too little would be free before; false if the memory cannot do. Each call
  // makes one round, O(n^2 + n log n) for n ops.
  [[nodiscard]] bool tighten(Side& side) const;
  // Is there memory enough for every set of stage-microbatches, between the earliest of their
  // begins and the latest of their ends? O(n log n).
  [[nodiscard]] bool area_fits(const Side& side) const;
  // Is there, in every stretch of time, for what must be held in it? O(n^3), and true without a
  // look where that would take long.
  [[nodiscard]] bool stretches_fit(const Side& side) const;

 private:
  // What a stage-microbatch does: it takes at `first`, holds `held` until `last` ends, and lives at
  // least `life` from begin to end. `area` is memory times time.
  struct Cell {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::int64_t taken_first = 0;
    std::int64_t held_last = 0;
    std::int64_t life = 0;
    double area = 0;
  };

  // Memory held from the begin of one op to the end of another, at least for `life`.
  struct Holding {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::int64_t life = 0;
    double amount = 0;
  };

  [[nodiscard]] bool lives_fit(Side& side) const;
  [[nodiscard]] double held_in(const Side& side, std::int64_t begin, std::int64_t end) const;
  [[nodiscard]] bool push(Side& side, std::size_t index,
                          const std::vector<std::size_t>& releases) const;
  [[nodiscard]] bool surely_before(const Side& side, std::size_t other, std::size_t index) const;
  void measure(const OpNetwork& network);

  const OpNetwork::Store& store_;
  std::vector<Cell> cells_;
  std::vector<Holding> holdings_;
  bool exclusive_ = false;  // no two cells fit at once
};

}  // namespace counterflow

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/bounds/lines.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// The ops of a small problem one by one, numbered as in Lines, with everything that holds between
// two of them, and what they hold of each memory limit.
struct OpNetwork {
  struct Arc {
    std::uint32_t op = 0;
    std::int64_t delay = 0;  // between the end of one and the begin of the other
  };
  // One limit of one rank. An op takes `need` when it begins and returns `give` when it ends; what
  // an op gives was taken by ops of the same cell (a stage-microbatch) before.
  struct Store {
    std::uint32_t rank = 0;
    std::int64_t limit = 0;
    std::vector<std::uint32_t> ops;  // those that need or give
    std::vector<std::int64_t> need;  // of each of them, likewise below
    std::vector<std::int64_t> give;
    std::vector<std::uint32_t> cell;
    std::uint32_t cells = 0;
  };

  // O(ops * waits + ops^2 / 64 * waits).
  OpNetwork(const Problem& problem, const Lines& lines);

  [[nodiscard]] std::size_t size() const { return duration.size(); }
  // Does `first` end before `second` begins in every schedule considered?
  [[nodiscard]] bool precedes(std::uint32_t first, std::uint32_t second) const {
    return (earlier[second * words + first / 64] >> (first % 64) & 1U) != 0;
  }

  std::vector<std::int64_t> duration;
  std::vector<std::uint32_t> rank;
  std::vector<std::vector<Arc>> before;             // what an op waits for
  std::vector<std::vector<Arc>> after;              // what waits for it
  std::vector<std::uint32_t> order;                 // topological
  std::vector<std::vector<std::uint32_t>> of_rank;  // [rank] its ops
  std::vector<Store> stores;

 private:
  void add_arcs(const Lines& lines);
  void close();

  std::size_t words = 0;
  std::vector<std::uint64_t> earlier;  // [op][word] bit set of the ops before it
};

}  // namespace counterflow

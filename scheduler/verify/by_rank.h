#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <iterator>
#include <thread>
#include <vector>

#include "scheduler/ir/diagnostic.h"
#include "scheduler/ir/program.h"

namespace counterflow {

// Is there enough to do for a second thread? A few milliseconds.
inline bool is_worth_threads(const Program& program) {
  return program.size() >= 50'000;
}

// Calls check(rank, faults) for every rank, on all cores where the program is large enough to be
// worth it. The checks must share nothing that one of them changes. Faults come in the order of
// ranks, whoever finds them first.
template <typename Check>
void by_rank(const Program& program, Diagnostics& out, Check check) {
  const std::size_t ranks = program.ranks.size();
  std::vector<Diagnostics> found(ranks);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t rank = next++; rank < ranks; rank = next++) check(rank, found[rank]);
  };
  const std::size_t threads =
      is_worth_threads(program)
          ? std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, ranks)
          : 1;
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < threads; ++i) {
    others.push_back(std::async(std::launch::async, work));
  }
  work();
  for (auto& other : others) other.get();
  for (Diagnostics& each : found) {
    std::ranges::move(each, std::back_inserter(out));
  }
}

}  // namespace counterflow

#include "scheduler/search/sequences.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace counterflow {
namespace {

// The work of a microbatch over all stages.
std::int64_t work_of(const Problem& problem, Microbatch microbatch) {
  std::int64_t work = 0;
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    for (const OpKind kind : {OpKind::forward, OpKind::backward}) {
      work +=
          problem.costs.duration({kind, 0, static_cast<std::uint16_t>(stage), microbatch}).count();
    }
  }
  return work;
}

}  // namespace

std::vector<std::vector<std::vector<Microbatch>>> microbatch_sequences(const Problem& problem) {
  if (problem.costs.uniform()) return {};
  std::vector<std::int64_t> work;
  for (Microbatch mb = 0; mb < problem.microbatches; ++mb) work.push_back(work_of(problem, mb));
  const auto by_work = [&](Microbatch mb) { return work[static_cast<std::size_t>(mb)]; };
  std::vector<std::vector<std::vector<Microbatch>>> result(3);
  for (int replica = 0; replica < problem.placement.replicas(); ++replica) {
    std::vector<Microbatch> rising;
    for (Microbatch mb = 0; mb < problem.microbatches; ++mb) {
      if (problem.replica_of(mb) == replica) rising.push_back(mb);
    }
    std::ranges::stable_sort(rising, {}, by_work);
    std::vector<Microbatch> falling(rising.rbegin(), rising.rend());
    std::vector<Microbatch> turns;
    for (std::size_t i = 0; turns.size() < rising.size(); ++i) {
      turns.push_back(falling[i]);
      if (turns.size() < rising.size()) turns.push_back(rising[i]);
    }
    result[0].push_back(std::move(falling));
    result[1].push_back(std::move(rising));
    result[2].push_back(std::move(turns));
  }
  return result;
}

}  // namespace counterflow

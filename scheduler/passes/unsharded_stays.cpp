#include "scheduler/passes/unsharded_stays.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "scheduler/graph/op_messages.h"

namespace counterflow {
namespace {

// The part of a stay that one rank asks for.
struct Need {
  Stage stage = 0;
  std::size_t holder = 0;
  std::size_t first = 0, last = 0;  // among the rank's computes that read parameters
  std::uint32_t last_run = 0;
  Time at{0}, begin{0}, end{0};
};

// What one rank asks for.
class RankNeeds {
 public:
  RankNeeds(const Problem& problem, const Program& program, const RunTimes& times,
            const ShardedParameters& parameters, std::size_t rank)
      : program_(program),
        times_(times),
        parameters_(parameters),
        rank_(rank),
        prefetch_(static_cast<std::size_t>(problem.optimizer->sharding->prefetch)) {}

  [[nodiscard]] std::vector<Need> find() {
    std::uint32_t run = 0;
    for (const Instruction& i : program_.ranks[rank_].instructions) {
      if (i.kind != InstructionKind::run || !uses_buffers(i.op)) continue;
      const Op ops[] = {i.op, i.paired};
      if (std::ranges::any_of(ops, reads_parameters)) {
        begins_.push_back(times_.begin(rank_, run));
        const Time end = times_.end(rank_, run, program_.kernels[i.kernel]);
        for (const Op& op : ops) {
          if (reads_parameters(op)) use(op.stage, run, end);
        }
      }
      ++run;
    }
    return std::move(needs_);
  }

 private:
  void use(Stage stage, std::uint32_t run, Time end) {
    if (parameters_.units(stage).empty()) return;
    const std::size_t now = begins_.size() - 1;
    const auto [open, is_first] = open_.try_emplace(stage, needs_.size());
    if (is_first || needs_[open->second].last + 1 < now) {
      open->second = needs_.size();
      const Time at = now < prefetch_ + 1 ? Time{0} : begins_[now - prefetch_];
      needs_.push_back({.stage = stage,
                        .holder = parameters_.number(stage, static_cast<Rank>(rank_)),
                        .first = now,
                        .at = at,
                        .begin = begins_[now]});
    }
    Need& need = needs_[open->second];
    need.last = now;
    need.last_run = run;
    need.end = end;
  }

  const Program& program_;
  const RunTimes& times_;
  const ShardedParameters& parameters_;
  std::size_t rank_;
  std::size_t prefetch_;
  std::vector<Time> begins_;  // of the computes that read parameters
  std::map<Stage, std::size_t> open_;
  std::vector<Need> needs_;
};

void add(const Need& need, UnshardedStay& stay) {
  stay.needed = std::min(stay.needed, need.begin);
  stay.until = std::max(stay.until, need.end);
  // Needs come by their begin, so the later one of a rank counts.
  stay.last[need.holder] = {need.last_run, need.end};
}

}  // namespace

std::vector<UnshardedStay> unsharded_stays(const Problem& problem, const Program& program,
                                           const RunTimes& times,
                                           const ShardedParameters& parameters) {
  std::vector<Need> needs;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    std::vector<Need> own = RankNeeds(problem, program, times, parameters, rank).find();
    needs.insert(needs.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(needs, {}, [](const Need& need) {
    return std::tuple(need.stage, need.at, need.begin, need.holder);
  });
  const bool once = problem.optimizer->sharding->reshard == Resharding::never;
  std::vector<UnshardedStay> stays;
  for (const Need& need : needs) {
    const bool goes_on = !stays.empty() && stays.back().stage == need.stage &&
                         (once || need.at < stays.back().until);
    if (!goes_on) {
      stays.push_back({.stage = need.stage,
                       .at = need.at,
                       .needed = need.begin,
                       .until = need.end,
                       .last = {}});
      stays.back().last.resize(parameters.holders(need.stage).size());
    }
    add(need, stays.back());
  }
  std::ranges::stable_sort(stays, {}, [](const UnshardedStay& stay) {
    return std::tuple(stay.at, stay.needed, stay.stage);
  });
  return stays;
}

}  // namespace counterflow

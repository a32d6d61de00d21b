#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

std::string text(const Problem& problem, std::size_t phase) {
  return fmt::format("phase {} ({})", phase, name(problem.phases[phase].kind));
}

// Goes along a rank's order, and says what comes too late.
class RankPhases {
 public:
  RankPhases(const Problem& problem, Rank rank, Diagnostics& out)
      : problem_(problem), rank_(rank), out_(out) {}

  // Both parts of a pair run at once, so neither stands before the other.
  void pass(std::size_t index, const Slot& slot) {
    for (const Op& op : {slot.first, slot.second}) {
      if (op.kind == OpKind::none) continue;
      const std::size_t phase = problem_.phase_of(op.microbatch);
      if (phase > latest_ || latest_op_.kind == OpKind::none) {
        latest_ = phase;
        latest_op_ = op;
      }
    }
    for (const Op& op : {slot.first, slot.second}) {
      if (op.kind != OpKind::none) check(index, op);
    }
  }

 private:
  void check(std::size_t index, const Op& op) {
    const std::size_t phase = problem_.phase_of(op.microbatch);
    if (phase == latest_) return;
    out_.push_back({.rule = "phase",
                    .rank = rank_,
                    .index = static_cast<std::int64_t>(index),
                    .op = op,
                    .message = fmt::format("is of {}, and {} of {} does not come after it; a rank "
                                           "ends a phase before it begins the next",
                                           text(problem_, phase), to_string(latest_op_),
                                           text(problem_, latest_))});
  }

  const Problem& problem_;
  Rank rank_;
  Diagnostics& out_;
  std::size_t latest_ = 0;
  Op latest_op_;  // the first of that phase
};

}  // namespace

void phase(const Problem& problem, const Schedule& schedule, Diagnostics& out) {
  if (problem.phases.empty()) return;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    RankPhases phases(problem, static_cast<Rank>(rank), out);
    for (std::size_t index = 0; index < schedule.ranks[rank].size(); ++index) {
      phases.pass(index, schedule.ranks[rank][index]);
    }
  }
}

}  // namespace counterflow::rules

#include <fmt/format.h>

#include <vector>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// What of a stage and microbatch has been made so far.
enum : std::uint8_t { kForward = 1, kGradient = 2, kStored = 4, kRestored = 8 };

std::uint8_t made_by(OpKind kind) {
  if (kind == OpKind::forward) return kForward;
  if (kind == OpKind::offload) return kStored;
  if (restores_or_stores(kind)) return kRestored;
  return makes_input_gradient(kind) ? kGradient : 0;
}

class OrderCheck {
 public:
  OrderCheck(const Problem& problem, Diagnostics& out)
      : problem_(problem),
        out_(out),
        made_(static_cast<std::size_t>(problem.stages()) *
              static_cast<std::size_t>(problem.microbatches)) {}

  // Both parts of a pair begin together: neither may need what the other makes.
  void pass(Rank rank, std::size_t index, const Slot& slot) {
    for (const Op& op : {slot.first, slot.second}) check(rank, index, op);
    for (const Op& op : {slot.first, slot.second}) {
      if (op.kind != OpKind::none) state(op.stage, op.microbatch) |= made_by(op.kind);
    }
  }

 private:
  std::uint8_t& state(Stage stage, Microbatch microbatch) {
    return made_[static_cast<std::size_t>(stage) * static_cast<std::size_t>(problem_.microbatches) +
                 static_cast<std::size_t>(microbatch)];
  }

  void check(Rank rank, std::size_t index, const Op& op) {
    const auto require = [&](OpKind kind, Stage stage) {
      if ((state(stage, op.microbatch) & made_by(kind)) != 0) return;
      const Op needed{kind, op.replica, static_cast<std::uint16_t>(stage), op.microbatch};
      out_.push_back(
          {.rule = "order",
           .rank = rank,
           .index = static_cast<std::int64_t>(index),
           .op = op,
           .message = fmt::format("comes before {}, which it needs", to_string(needed))});
    };
    const auto is_here = [&](Stage stage) {
      return problem_.placement.rank_of(stage, op.replica) == rank;
    };
    switch (op.kind) {
      case OpKind::forward:
        for (const Stage from : problem_.graph.predecessors(op.stage)) {
          if (is_here(from)) require(OpKind::forward, from);
        }
        break;
      case OpKind::backward:
      case OpKind::backward_input:
        require(OpKind::forward, op.stage);
        if (problem_.restores(op.stage, op.microbatch)) {
          require(problem_.keeping_of(op.stage).restore_kind(), op.stage);
        }
        for (const Stage from : problem_.graph.successors(op.stage)) {
          if (is_here(from)) require(op.kind, from);
        }
        break;
      case OpKind::backward_weight:
        require(OpKind::backward_input, op.stage);
        break;
      case OpKind::recompute:
      case OpKind::offload:
        require(OpKind::forward, op.stage);
        break;
      case OpKind::reload:
        require(OpKind::offload, op.stage);
        break;
      default:
        break;
    }
  }

  const Problem& problem_;
  Diagnostics& out_;
  std::vector<std::uint8_t> made_;  // [stage][microbatch]
};

}  // namespace

void order(const Problem& problem, const Schedule& schedule, Diagnostics& out) {
  OrderCheck check(problem, out);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t index = 0; index < schedule.ranks[rank].size(); ++index) {
      check.pass(static_cast<Rank>(rank), index, schedule.ranks[rank][index]);
    }
  }
}

}  // namespace counterflow::rules

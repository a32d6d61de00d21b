#include <fmt/format.h>

#include <vector>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// What of a stage and microbatch a rank has been through.
enum : std::uint8_t { kForward = 1, kGradient = 2 };

struct Need {
  std::uint8_t before = 0;
  OpKind named = OpKind::none;
  std::uint8_t makes = 0;
};

Need need_of(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return {0, OpKind::none, kForward};
    case OpKind::backward:
    case OpKind::backward_input:
      return {kForward, OpKind::forward, kGradient};
    case OpKind::backward_weight:
      return {kGradient, OpKind::backward_input, 0};
    default:
      return {};
  }
}

}  // namespace

void order(const Problem& problem, const Schedule& schedule, Diagnostics& out) {
  std::vector<std::uint8_t> done(static_cast<std::size_t>(problem.stages()) *
                                 static_cast<std::size_t>(problem.microbatches));
  const auto state = [&](const Op& op) -> std::uint8_t& {
    return done[op.stage * static_cast<std::size_t>(problem.microbatches) +
                static_cast<std::size_t>(op.microbatch)];
  };
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t index = 0; index < schedule.ranks[rank].size(); ++index) {
      const Slot& slot = schedule.ranks[rank][index];
      // Both parts of a pair begin together: neither may need what the other makes.
      for (const Op& op : {slot.first, slot.second}) {
        const Need need = need_of(op.kind);
        if (op.kind == OpKind::none || (state(op) & need.before) == need.before) continue;
        const Op missing{need.named, op.replica, op.stage, op.microbatch};
        out.push_back(
            {.rule = "order",
             .rank = static_cast<Rank>(rank),
             .index = static_cast<std::int64_t>(index),
             .op = op,
             .message = fmt::format("comes before {}, which it needs", to_string(missing))});
      }
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind != OpKind::none) state(op) |= need_of(op.kind).makes;
      }
    }
  }
}

}  // namespace counterflow::rules

#include "schedules/phases.h"

#include <cstddef>
#include <vector>

#include "schedules/families.h"
#include "schedules/registry.h"
#include "schedules/turns.h"

namespace counterflow {
namespace {

bool is_loop(const Placement& placement) {
  if (placement.replicas() > 1 || placement.stages() % placement.ranks() != 0) return false;
  for (Stage s = 0; s < placement.stages(); ++s) {
    if (placement.rank_of(s) != s % placement.ranks()) return false;
  }
  return true;
}

std::vector<Slot> stage_by_stage(const Problem& problem, Rank rank) {
  std::vector<Slot> order;
  for (const Chunk& chunk : problem.placement.chunks_of(rank)) {
    for (Microbatch mb = 0; mb < problem.microbatches; ++mb) {
      if (problem.replica_of(mb) != chunk.replica) continue;
      order.push_back({compute_op(OpKind::forward, chunk.stage, mb, chunk.replica), {}});
    }
  }
  return order;
}

void renumber(Op& op, Microbatch first) {
  if (op.kind != OpKind::none) op.microbatch += first;
}

}  // namespace

Schedule forward_pass(const Problem& problem) {
  if (is_loop(problem.placement)) {
    const Family family = forward_only();
    Shape shape = shape_of(problem);
    // Groups are the wish of the phase that trains: where they do not fit here, the usual ones.
    if (refusal(family, shape)) shape.group_size = 0;
    return family.generate(shape);
  }
  Schedule schedule;
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    schedule.ranks.push_back(stage_by_stage(problem, rank));
  }
  return schedule;
}

void append(Schedule& whole, const Schedule& pass, Microbatch first) {
  for (std::size_t rank = 0; rank < pass.ranks.size(); ++rank) {
    for (Slot slot : pass.ranks[rank]) {
      renumber(slot.first, first);
      renumber(slot.second, first);
      whole.ranks[rank].push_back(slot);
    }
  }
}

}  // namespace counterflow

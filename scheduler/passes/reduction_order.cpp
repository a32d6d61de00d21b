#include "scheduler/passes/reduction_order.h"

#include <algorithm>
#include <vector>

#include "scheduler/graph/evaluate.h"
#include "scheduler/graph/op_messages.h"
#include "scheduler/passes/compute_of.h"

namespace counterflow {

RunTimes::RunTimes(const Problem& problem, const Program& program)
    : channels_(problem),
      microbatches_(static_cast<std::size_t>(problem.microbatches)),
      made_(channels_.size() * microbatches_),
      begins_(Evaluator(problem, Time{1}).evaluate(compute_of(program)).begins) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    std::size_t position = 0;
    for (const Instruction& i : program.ranks[rank].instructions) {
      if (i.kind != InstructionKind::run || !uses_buffers(i.op)) continue;
      for (const Op& op : {i.op, i.paired}) {
        if (op.kind == OpKind::none) continue;
        for (const Channels::Id id : channels_.outputs(op)) {
          made_[at(id, op.microbatch)] = end(rank, position, program.kernels[i.kernel]);
        }
      }
      ++position;
    }
  }
}

std::vector<Reduction> reductions_of(const GradientSums& sums, const RunTimes& times,
                                     const Program& program) {
  std::vector<Reduction> all(sums.size());
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    std::size_t position = 0;
    for (const Instruction& i : program.ranks[rank].instructions) {
      if (i.kind != InstructionKind::run || !uses_buffers(i.op)) continue;
      for (const Op& op : {i.op, i.paired}) {
        if (!accumulates(op)) continue;
        for (const GradientSums::Id id : sums.of(op.stage)) {
          const Time end = times.end(rank, position, program.kernels[i.kernel]);
          all[id].ready = std::max(all[id].ready, end);
        }
      }
      ++position;
    }
  }
  for (GradientSums::Id id = 0; id < all.size(); ++id) all[id].sum = id;
  std::erase_if(all, [&](const Reduction& r) { return !sums[r.sum].is_shared(); });
  std::ranges::sort(all, {}, &Reduction::place);
  return all;
}

}  // namespace counterflow

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// The most a rank ever holds, and where it first holds more than it may.
struct Peak {
  std::int64_t value = 0;
  std::optional<std::size_t> first_excess;
};

// Follows one quantity along a rank's order: `before` a slot begins, `after` it has ended.
template <typename Before, typename After>
Peak peak_of(const std::vector<Slot>& order, std::int64_t initially, std::int64_t limit,
             Before before, After after) {
  Peak peak{.value = initially, .first_excess = std::nullopt};
  std::int64_t held = initially;
  for (std::size_t index = 0; index < order.size(); ++index) {
    for (const Op& op : {order[index].first, order[index].second}) {
      if (op.kind != OpKind::none) held += before(op);
    }
    peak.value = std::max(peak.value, held);
    if (held > limit && !peak.first_excess) peak.first_excess = index;
    for (const Op& op : {order[index].first, order[index].second}) {
      if (op.kind != OpKind::none) held -= after(op);
    }
  }
  return peak;
}

// Exact, and readable where it is large.
std::string size_text(std::int64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  if (bytes < (std::int64_t{1} << 20U)) return fmt::format("{} B", bytes);
  return fmt::format("{} B ({:.3f} GiB)", bytes, static_cast<double>(bytes) / kGiB);
}

void report(const Schedule& schedule, std::size_t rank, const Peak& peak, std::string message,
            Diagnostics& out) {
  const std::size_t index = *peak.first_excess;
  out.push_back({.rule = "memory",
                 .rank = static_cast<Rank>(rank),
                 .index = static_cast<std::int64_t>(index),
                 .op = schedule.ranks[rank][index].first,
                 .message = std::move(message)});
}

void check_bytes(const Problem& problem, const Schedule& schedule, std::size_t rank,
                 Diagnostics& out) {
  const std::int64_t fixed =
      problem.limits.static_memory.empty() ? 0 : problem.limits.static_memory[rank].value;
  const std::int64_t limit = problem.limits.bytes[rank].value;
  const Peak peak = peak_of(
      schedule.ranks[rank], fixed, limit, [&](const Op& op) { return problem.allocated(op).value; },
      [&](const Op& op) { return problem.freed(op).value; });
  if (!peak.first_excess) return;
  report(schedule, rank, peak,
         fmt::format("rank {} needs {} in this order ({} of it static), its limit is {}; raise "
                     "memory.limit or take a schedule that holds less",
                     rank, size_text(peak.value), size_text(fixed), size_text(limit)),
         out);
}

// Counted like peak_activations: a stage-microbatch from its F to the end of its gradient work.
class HeldActivations {
 public:
  explicit HeldActivations(const Problem& problem) : problem_(problem) {}
  std::int64_t before(const Op& op) const { return op.kind == OpKind::forward ? 1 : 0; }
  std::int64_t after(const Op& op) const {
    const bool weight = problem_.needs_backward_weight(op.stage, op.microbatch);
    const bool input = problem_.needs_backward_input(op.stage, op.microbatch);
    switch (op.kind) {
      case OpKind::forward:
        return input ? 0 : 1;
      case OpKind::backward:
        return 1;
      case OpKind::backward_input:
        return weight ? 0 : 1;
      case OpKind::backward_weight:
        return 1;
      default:
        return 0;
    }
  }

 private:
  const Problem& problem_;
};

void check_activations(const Problem& problem, const Schedule& schedule, std::size_t rank,
                       Diagnostics& out) {
  const std::int64_t limit = problem.limits.activations[rank];
  const HeldActivations held(problem);
  const Peak peak = peak_of(
      schedule.ranks[rank], 0, limit, [&](const Op& op) { return held.before(op); },
      [&](const Op& op) { return held.after(op); });
  if (!peak.first_excess) return;
  report(schedule, rank, peak,
         fmt::format("rank {} holds {} activations in this order, its limit is {}; raise "
                     "memory.limit_activations or take a schedule that holds less",
                     rank, peak.value, limit),
         out);
}

}  // namespace

void memory(const Problem& problem, const Schedule& schedule, Diagnostics& out) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (!problem.limits.bytes.empty()) check_bytes(problem, schedule, rank, out);
    if (!problem.limits.activations.empty()) check_activations(problem, schedule, rank, out);
  }
}

void memory(const Problem& problem, const Program& program, Diagnostics& out) {
  if (!problem.optimizer || !problem.optimizer->sharding || problem.limits.bytes.empty()) return;
  const Sharding& sharding = *problem.optimizer->sharding;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const RankProgram& list = program.ranks[rank];
    const std::int64_t limit = problem.limits.bytes[rank].value;
    Peak peak{.value = list.static_memory.value, .first_excess = std::nullopt};
    std::int64_t held = peak.value;
    for (std::size_t index = 0; index < list.instructions.size(); ++index) {
      const Instruction& instruction = list.instructions[index];
      if (instruction.kind != InstructionKind::run) continue;
      const Kernel& kernel = program.kernels[instruction.kernel];
      held += kernel.allocates.value;
      peak.value = std::max(peak.value, held);
      if (held > limit && !peak.first_excess) peak.first_excess = index;
      held -= kernel.frees.value;
    }
    if (!peak.first_excess) continue;
    out.push_back(
        {.rule = "memory",
         .rank = static_cast<Rank>(rank),
         .index = static_cast<std::int64_t>(*peak.first_excess),
         .op = list.instructions[*peak.first_excess].op,
         .message = fmt::format(
             "rank {} needs {} with what it gathers ({} of it static), its limit is {}; "
             "raise memory.limit{}{}",
             rank, size_text(peak.value), size_text(list.static_memory.value), size_text(limit),
             sharding.prefetch > 0 ? ", or gather less ahead (optimizer.fsdp.prefetch)" : "",
             sharding.reshard == Resharding::never ? ", or let optimizer.fsdp.reshard be after_use"
                                                   : "")});
  }
}

}  // namespace counterflow::rules

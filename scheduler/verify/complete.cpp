#include <fmt/format.h>

#include <array>
#include <vector>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// How often each op of one (stage, replica, microbatch) stands in the schedule.
struct Count {
  std::array<std::uint8_t, 7> of_kind{};  // F, B, I, W, RECOMPUTE, OFFLOAD, RELOAD
  [[nodiscard]] bool has_split() const { return of_kind[2] + of_kind[3] > 0; }
};

std::size_t kind_index(OpKind kind) {
  return static_cast<std::size_t>(kind) - static_cast<std::size_t>(OpKind::forward);
}

class Census {
 public:
  explicit Census(const Problem& problem)
      : problem_(problem),
        counts_(static_cast<std::size_t>(problem.stages()) *
                static_cast<std::size_t>(problem.microbatches)) {}

  // A microbatch flows through one replica only, so stage and microbatch are enough.
  Count& of(Stage stage, Microbatch microbatch) {
    return counts_[static_cast<std::size_t>(stage) *
                       static_cast<std::size_t>(problem_.microbatches) +
                   static_cast<std::size_t>(microbatch)];
  }

 private:
  const Problem& problem_;
  std::vector<Count> counts_;
};

// Why this problem has no such op; empty if it does.
std::string unwanted(const Problem& problem, const Op& op) {
  switch (op.kind) {
    case OpKind::forward:
      return "";
    case OpKind::backward:
    case OpKind::backward_input:
    case OpKind::backward_weight:
    case OpKind::recompute:
    case OpKind::offload:
    case OpKind::reload:
      break;
    default:
      return "only F, B, I, W, RECOMPUTE, OFFLOAD and RELOAD can be scheduled";
  }
  if (problem.forward_only) return "a forward-only schedule has no backward";
  if (!problem.trains(op.microbatch)) {
    return fmt::format("microbatch {} is of phase {} ({}), which has no backward", op.microbatch,
                       problem.phase_of(op.microbatch),
                       name(problem.phases[problem.phase_of(op.microbatch)].kind));
  }
  if (!problem.needs_backward_input(op.stage)) {
    return fmt::format("no gradient reaches stage {}: it and all before it are frozen", op.stage);
  }
  if (restores_or_stores(op.kind)) {
    const Keeping keeping = problem.keeping_of(op.stage);
    if (op.kind == keeping.restore_kind() || op.kind == keeping.store_kind()) return "";
    if (keeping.kind != KeepingKind::all) {
      return fmt::format("stage {} brings its activations back by {}", op.stage,
                         token(keeping.restore_kind()));
    }
    return fmt::format("stage {} keeps its activations; give stages.{} to let it do otherwise",
                       op.stage, op.kind == OpKind::recompute ? "recompute" : "offload");
  }
  if (op.kind != OpKind::backward_input && !problem.needs_backward_weight(op.stage)) {
    return fmt::format("stage {} is frozen and has no weight gradient; its backward is {}",
                       op.stage,
                       to_string(Op{OpKind::backward_input, op.replica, op.stage, op.microbatch}));
  }
  return "";
}

void count(const Problem& problem, const Schedule& schedule, Census& census, Diagnostics& out) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t index = 0; index < schedule.ranks[rank].size(); ++index) {
      const Slot& slot = schedule.ranks[rank][index];
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind == OpKind::none) continue;
        std::string message = unwanted(problem, op);
        if (message.empty()) {
          std::uint8_t& seen = census.of(op.stage, op.microbatch).of_kind[kind_index(op.kind)];
          if (seen == 0) {
            seen = 1;
            continue;
          }
          message = "stands in the schedule more than once";
        }
        out.push_back({.rule = "complete",
                       .rank = static_cast<Rank>(rank),
                       .index = static_cast<std::int64_t>(index),
                       .op = op,
                       .message = std::move(message)});
      }
    }
  }
}

// The kinds that should be there for a stage and microbatch but are not; B and the split parts
// exclude each other.
void check(const Problem& problem, Stage stage, Microbatch microbatch, const Count& seen,
           Diagnostics& out) {
  const int replica = problem.replica_of(microbatch);
  const Rank rank = problem.placement.rank_of(stage, replica);
  const auto report = [&](OpKind kind, std::string message) {
    out.push_back({.rule = "complete",
                   .rank = rank,
                   .index = std::nullopt,
                   .op = {kind, static_cast<std::uint8_t>(replica),
                          static_cast<std::uint16_t>(stage), microbatch},
                   .message = std::move(message)});
  };
  const auto require = [&](OpKind kind) {
    if (seen.of_kind[kind_index(kind)] == 0) report(kind, "is missing");
  };
  require(OpKind::forward);
  if (!problem.needs_backward_input(stage, microbatch)) return;
  const Keeping keeping = problem.keeping_of(stage);
  for (const OpKind kind : {keeping.store_kind(), keeping.restore_kind()}) {
    if (kind != OpKind::none) require(kind);
  }
  const bool full = seen.of_kind[kind_index(OpKind::backward)] != 0;
  if (full && seen.has_split()) {
    report(OpKind::backward, "is there beside I or W, which are its parts");
  }
  if (full) return;
  if (!seen.has_split() && problem.needs_backward_weight(stage)) {
    report(OpKind::backward, "is missing, and so are its parts I and W");
    return;
  }
  require(OpKind::backward_input);
  if (problem.needs_backward_weight(stage)) require(OpKind::backward_weight);
}

}  // namespace

void complete(const Problem& problem, const Schedule& schedule, Diagnostics& out) {
  Census census(problem);
  count(problem, schedule, census, out);
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    for (Microbatch microbatch = 0; microbatch < problem.microbatches; ++microbatch) {
      check(problem, stage, microbatch, census.of(stage, microbatch), out);
    }
  }
}

}  // namespace counterflow::rules

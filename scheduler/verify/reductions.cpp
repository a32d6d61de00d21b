#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/gradient_sums.h"
#include "scheduler/graph/op_messages.h"
#include "scheduler/verify/rules.h"

// What one rank adds up must be what the others add up: collectives carry no name. That sums are
// complete when they are added up, and added up when a step reads them, is for rule `buffers`.
namespace counterflow::rules {
namespace {

using Id = GradientSums::Id;

constexpr Id kNorm = kNone - 1;

class ReductionChecker {
 public:
  ReductionChecker(const Problem& problem, const Program& program, Diagnostics& out)
      : problem_(problem), program_(program), out_(out), sums_(problem) {
    for (Rank rank = 0; rank < problem.ranks(); ++rank) {
      if (!problem.placement.chunks_of(rank).empty()) at_work_.push_back(rank);
    }
  }

  void check() {
    for (rank_ = 0; rank_ < program_.ranks.size(); ++rank_) check_rank();
  }

 private:
  void check_rank() {
    const RankProgram& list = program_.ranks[rank_];
    held_.assign(list.slots.size(), kNone);
    times_reduced_.clear();
    std::map<Op, int> runs;
    for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
      const Instruction& instruction = list.instructions[i];
      if (instruction.kind == InstructionKind::run) {
        note(instruction);
        if (follows_gradients(instruction.op)) check_once(i, ++runs[instruction.op]);
      } else if (instruction.kind == InstructionKind::collective) {
        check_collective(i, list.collectives[instruction.body.first], instruction.communicator);
      }
    }
    check_all_there(runs);
  }

  static bool follows_gradients(const Op& op) {
    return op.kind == OpKind::gradient_norm || op.kind == OpKind::optimizer_step ||
           op.kind == OpKind::validate_step;
  }

  // Which slots hold which sums.
  void note(const Instruction& instruction) {
    const auto accesses = program_.ranks[rank_].accesses_of(instruction);
    if (instruction.op.kind == OpKind::gradient_norm) held_[accesses.back().slot] = kNorm;
    for (const Op& op : {instruction.op, instruction.paired}) {
      if (!accumulates(op)) continue;
      const auto ids = sums_.of(op.stage);
      const auto last = accesses.last(ids.size());
      for (std::size_t k = 0; k < ids.size(); ++k) held_[last[k].slot] = ids[k];
    }
  }

  void check_once(std::uint32_t index, int count) {
    if (count == problem_.steps + 1) {
      report(index, problem_.steps == 1
                        ? "stands in the program more than once"
                        : fmt::format("stands in the program more than once in each of {} steps",
                                      problem_.steps));
    }
  }

  void check_collective(std::uint32_t index, const Collective& collective,
                        CommunicatorId communicator) {
    const RankProgram& list = program_.ranks[rank_];
    if (collective.slot == kNone) return;  // moves nothing of ours
    if (list.slots[collective.slot].pool == BufferPool::parameters) return;  // rule `sharding`
    const Id id = held_[collective.slot];
    if (id == kNone) return report(index, "adds up what is no sum of gradients");
    if (const CollectiveKind needed = kind(id); collective.kind != needed) {
      return report(index,
                    fmt::format("is a {}; {} needs {} {}", name(collective.kind), described(id),
                                needed == CollectiveKind::all_reduce ? "an" : "a", name(needed)));
    }
    const auto& members = program_.communicators[communicator].members;
    if (members != sharers(id)) {
      report(index, fmt::format("adds up {} on communicator {}, whose members are not the ranks "
                                "that share it",
                                described(id), communicator));
    }
    if (collective.size != size(id)) {
      report(index, fmt::format("adds up {} B of {}, which has {} B", collective.size.value,
                                described(id), size(id).value));
    }
    const auto [entry, is_first] =
        meant_.try_emplace({communicator, collective.sequence}, std::pair{rank_, id});
    if (!is_first && entry->second.second != id) {
      report(index, fmt::format("adds up {} where rank {} adds up {}", described(id),
                                entry->second.first, described(entry->second.second)));
    }
    ++times_reduced_[id];
  }

  void check_all_there(const std::map<Op, int>& runs) {
    const auto rank = static_cast<Rank>(rank_);
    const auto require = [&](const Op& op) {
      const auto found = runs.find(op);
      if (found == runs.end()) return report(op, "is missing");
      if (found->second < problem_.steps) {
        report(op, fmt::format("is missing in one of {} steps", problem_.steps));
      }
    };
    const auto chunks = problem_.placement.chunks_of(rank);
    for (const Chunk& chunk : chunks) {
      if (!problem_.needs_backward_weight(chunk.stage)) continue;
      Op op{OpKind::optimizer_step, chunk.replica, static_cast<std::uint16_t>(chunk.stage), 0};
      require(op);
      op.kind = OpKind::validate_step;
      if (problem_.optimizer->validates()) require(op);
    }
    for (const Id id : sums_.on(problem_, rank)) {
      if (sums_[id].is_shared()) require_reduced(id);
    }
    if (!problem_.optimizer->global_norm || chunks.empty()) return;
    require({OpKind::gradient_norm, chunks.front().replica,
             static_cast<std::uint16_t>(chunks.front().stage), 0});
    if (at_work_.size() > 1) require_reduced(kNorm);
  }

  void require_reduced(Id id) {
    if (times_reduced_[id] > 0) return;
    report(std::nullopt, fmt::format("never adds up {}", described(id)));
  }

  [[nodiscard]] CollectiveKind kind(Id id) const {
    const bool scattered = id != kNorm && sums_[id].is_scattered;
    return scattered ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  }
  [[nodiscard]] const std::vector<Rank>& sharers(Id id) const {
    return id == kNorm ? at_work_ : sums_[id].holders;
  }
  [[nodiscard]] Bytes size(Id id) const { return id == kNorm ? Bytes{4} : sums_[id].size; }
  [[nodiscard]] std::string described(Id id) const {
    if (id == kNorm) return "the norm of the gradients";
    const GradientSums::Sum& sum = sums_[id];
    if (sum.stages.size() > 1) {
      return fmt::format("the tied gradients of stages {} and {}", sum.stages.front(),
                         sum.stages.back());
    }
    return fmt::format("bucket {} of the gradients of stage {}", sum.bucket, sum.stages.front());
  }

  void report(std::optional<std::uint32_t> index, std::string message) {
    const Op op = index ? program_.ranks[rank_].instructions[*index].op : Op{};
    out_.push_back({.rule = "reduction",
                    .rank = static_cast<Rank>(rank_),
                    .index = index,
                    .op = op,
                    .message = std::move(message)});
  }
  void report(const Op& op, std::string message) {
    report(std::nullopt, std::move(message));
    out_.back().op = op;
  }

  const Problem& problem_;
  const Program& program_;
  Diagnostics& out_;
  const GradientSums sums_;
  std::vector<Rank> at_work_;  // those that hold stages
  // [communicator, number] what it adds up, and which rank says so.
  std::map<std::pair<CommunicatorId, std::uint32_t>, std::pair<std::size_t, Id>> meant_;
  // Of the rank at hand.
  std::size_t rank_ = 0;
  std::vector<Id> held_;  // [slot]
  std::map<Id, int> times_reduced_;
};

}  // namespace

void reductions(const Problem& problem, const Program& program, Diagnostics& out) {
  if (!problem.optimizer) return;
  bool trains = false;
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    trains |= problem.needs_backward_weight(stage);
  }
  if (trains) ReductionChecker(problem, program, out).check();
}

}  // namespace counterflow::rules

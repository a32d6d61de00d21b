#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/gradient_sums.h"
#include "scheduler/graph/happens_before.h"
#include "scheduler/graph/sharded_parameters.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

// What one rank gathers must be what the others gather with it: collectives carry no name. That a
// compute finds the parameters of its stage, gathered and not freed, is for rule `buffers`.
namespace counterflow::rules {
namespace {

// A unit of a stage's parameters.
struct Unit {
  Stage stage = 0;
  std::size_t number = 0;
  friend bool operator==(const Unit&, const Unit&) = default;
};

class ShardingChecker {
 public:
  ShardingChecker(const Problem& problem, const Program& program, const References& references,
                  Diagnostics& out)
      : problem_(problem),
        program_(program),
        references_(references),
        out_(out),
        parameters_(problem, GradientSums(problem)) {}

  void check() {
    for (rank_ = 0; rank_ < program_.ranks.size(); ++rank_) {
      const RankProgram& list = program_.ranks[rank_];
      held_.clear();
      check_pace();
      for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
        const Instruction& instruction = list.instructions[i];
        if (instruction.op.kind == OpKind::unshard) note(i, instruction);
        for (const Collective& collective : list.collectives_of(instruction)) {
          if (collective.slot == kNone) continue;
          if (list.slots[collective.slot].pool != BufferPool::parameters) continue;
          check_gather(i, collective, instruction.communicator);
        }
      }
    }
  }

 private:
  // What a rank holds is counted in issue order, so no gather may begin before the compute that
  // stands before it in its step has ended.
  void check_pace() {
    const RankProgram& list = program_.ranks[rank_];
    const std::vector<int> steps = steps_of(list);
    HappensBefore order(list);
    std::uint32_t compute = kNone;
    for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
      const Instruction& instruction = list.instructions[i];
      order.begin(i, references_.recordings[rank_]);
      const bool runs = instruction.kind == InstructionKind::run;
      if (runs && instruction.op.kind == OpKind::unshard && compute != kNone &&
          steps[compute] == steps[i] && !order.follows(compute)) {
        report(i, fmt::format("may begin before {} has ended, and more would be held than is "
                              "counted; let it wait for its event",
                              to_string(list.instructions[compute].op)));
      }
      if (runs && is_compute(instruction.op.kind)) compute = i;
      order.finish();
    }
  }

  // The step of each instruction of a rank: that of its next compute.
  [[nodiscard]] std::vector<int> steps_of(const RankProgram& list) const {
    std::vector<int> steps(list.instructions.size());
    int step = problem_.steps - 1;
    for (std::size_t i = steps.size(); i-- > 0;) {
      const Op& op = list.instructions[i].op;
      if (list.instructions[i].kind == InstructionKind::run && is_compute(op.kind)) {
        step = problem_.step_of(op.microbatch);
      }
      steps[i] = step;
    }
    return steps;
  }

  // Which slots the units of a stage are in: of an UNSHARD's accesses all but the first.
  void note(std::uint32_t index, const Instruction& instruction) {
    const auto accesses = program_.ranks[rank_].accesses_of(instruction);
    if (accesses.empty()) return;
    const Stage stage = instruction.op.stage;
    if (!std::ranges::binary_search(parameters_.holders(stage), static_cast<Rank>(rank_))) {
      report(index, fmt::format("gathers stage {}, of which rank {} has no shard", stage, rank_));
    }
    for (std::size_t k = 1; k < accesses.size(); ++k) held_[accesses[k].slot] = {stage, k - 1};
  }

  void check_gather(std::uint32_t index, const Collective& collective,
                    CommunicatorId communicator) {
    const auto found = held_.find(collective.slot);
    if (found == held_.end()) return report(index, "gathers what no UNSHARD has put in its place");
    const Unit unit = found->second;
    if (collective.kind != CollectiveKind::all_gather) {
      return report(index, fmt::format("calls {}; {} needs an all_gather", name(collective.kind),
                                       described(unit)));
    }
    if (program_.communicators[communicator].members != parameters_.holders(unit.stage)) {
      report(index, fmt::format("gathers {} on communicator {}, whose members are not the ranks "
                                "that have its shards",
                                described(unit), communicator));
    }
    if (const Bytes size = parameters_.units(unit.stage)[unit.number]; collective.size != size) {
      report(index, fmt::format("gathers {} B of {}, which has {} B", collective.size.value,
                                described(unit), size.value));
    }
    const auto [entry, is_first] =
        meant_.try_emplace({communicator, collective.sequence}, std::pair{rank_, unit});
    if (!is_first && entry->second.second != unit) {
      report(index, fmt::format("gathers {} where rank {} gathers {}", described(unit),
                                entry->second.first, described(entry->second.second)));
    }
  }

  static std::string described(const Unit& unit) {
    return fmt::format("unit {} of the parameters of stage {}", unit.number, unit.stage);
  }

  void report(std::uint32_t index, std::string message) {
    out_.push_back({.rule = "sharding",
                    .rank = static_cast<Rank>(rank_),
                    .index = index,
                    .op = program_.ranks[rank_].instructions[index].op,
                    .message = std::move(message)});
  }

  const Problem& problem_;
  const Program& program_;
  const References& references_;
  Diagnostics& out_;
  const ShardedParameters parameters_;
  // [communicator, number] what it gathers, and which rank says so.
  std::map<std::pair<CommunicatorId, std::uint32_t>, std::pair<std::size_t, Unit>> meant_;
  // Of the rank at hand.
  std::size_t rank_ = 0;
  std::map<std::uint32_t, Unit> held_;  // [slot]
};

}  // namespace

void sharding(const Problem& problem, const Program& program, const References& references,
              Diagnostics& out) {
  if (!problem.optimizer || !problem.optimizer->sharding) return;
  ShardingChecker(problem, program, references, out).check();
}

}  // namespace counterflow::rules

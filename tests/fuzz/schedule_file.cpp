#include "scheduler/ir/schedule_file.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "tests/fuzz/run_program.h"
#include "tests/fuzz/targets.h"

namespace counterflow::fuzz {
namespace {

constexpr int kMostStages = 64;
constexpr int kMostMicrobatches = 64;

// What the ops of a file say about the problem it is for.
struct Facts {
  std::vector<Rank> rank_of_stage;  // where the stage stands first
  int microbatches = 0;
  bool has_replicas = false;
  bool has_backward = false;
};

template <typename Visit>
void for_each_op(const std::vector<Action>& row, const Visit& visit) {
  for (const Action& action : row) {
    if (action.form == Action::Form::group) {
      std::for_each(action.group.begin(), action.group.end(), visit);
      continue;
    }
    visit(action.op);
    if (action.form == Action::Form::pair) visit(action.paired);
  }
}

Facts facts_of(const ScheduleFile& file) {
  Facts facts;
  for (std::size_t r = 0; r < file.rows.size(); ++r) {
    for_each_op(file.rows[r], [&](const Op& op) {
      facts.microbatches = std::max(facts.microbatches, op.microbatch + 1);
      facts.has_replicas |= op.replica != 0;
      facts.has_backward |= is_backward(op.kind);
      if (op.stage >= kMostStages) return;
      const std::size_t stages = std::max<std::size_t>(facts.rank_of_stage.size(), op.stage + 1U);
      facts.rank_of_stage.resize(stages, -1);
      Rank& rank = facts.rank_of_stage[op.stage];
      if (rank < 0 && is_compute(op.kind)) rank = static_cast<Rank>(r);
    });
  }
  std::replace(facts.rank_of_stage.begin(), facts.rank_of_stage.end(), -1, 0);
  return facts;
}

void follow(const ScheduleFile& file) {
  const auto ranks = static_cast<int>(file.rows.size());
  const Facts facts = facts_of(file);
  if (ranks == 0 || ranks > kMostStages || facts.rank_of_stage.empty()) return;
  if (facts.microbatches == 0 || facts.microbatches > kMostMicrobatches) return;
  const bool two_ways = facts.has_replicas && ranks % 2 == 0;
  Problem problem = plain_problem(two_ways ? Placement(PlacementKind::bidirectional, ranks, 1)
                                           : Placement(ranks, facts.rank_of_stage),
                                  facts.microbatches);
  problem.forward_only = !facts.has_backward;
  const Diagnostics faults = verify(problem, file);
  (void)advice(file);
  const auto cannot_be_imported = [](const Diagnostic& fault) {
    return fault.rule == "range" || fault.rule == "rank";
  };
  if (std::any_of(faults.begin(), faults.end(), cannot_be_imported)) return;
  if (file.has_communication) {
    run_program(problem, import(problem, file));
  } else if (faults.empty()) {
    run_order(problem, file.compute());
  }
}

}  // namespace

void schedule_file(std::string_view csv) {
  ScheduleFile file;
  try {
    file = parse_schedule(csv, "fuzz.csv");
  } catch (const InputError& error) {
    require(std::string_view(error.what()).starts_with("fuzz.csv"), "the message names the file");
    return;
  }
  const std::string text = to_csv(file);
  const ScheduleFile again = parse_schedule(text, "written.csv");
  require(to_csv(again) == text, "a file written again reads back");
  require(again.compute().ranks == file.compute().ranks, "and has the same compute");
  follow(file);
}

}  // namespace counterflow::fuzz

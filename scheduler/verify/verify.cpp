#include "scheduler/verify/verify.h"

#include <algorithm>
#include <cstdint>
#include <future>
#include <iterator>
#include <utility>
#include <vector>

#include "scheduler/verify/by_rank.h"
#include "scheduler/verify/rules.h"

namespace counterflow {
namespace {

// An order of compute, and where its slots stand in the list it was taken from.
struct ComputeOrder {
  Schedule schedule;
  std::vector<std::vector<std::int64_t>> positions;  // [rank][slot]
};

ComputeOrder compute_of(const ScheduleFile& file) {
  ComputeOrder order{file.compute(), {}};
  for (const auto& row : file.rows) {
    auto& positions = order.positions.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].form == Action::Form::group || !is_compute(row[i].op.kind)) continue;
      positions.push_back(static_cast<std::int64_t>(i));
    }
  }
  return order;
}

ComputeOrder compute_of(const Program& program) {
  ComputeOrder order;
  order.schedule.name = program.schedule;
  for (const RankProgram& rank : program.ranks) {
    auto& slots = order.schedule.ranks.emplace_back();
    auto& positions = order.positions.emplace_back();
    for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
      const Instruction& instruction = rank.instructions[i];
      if (instruction.kind != InstructionKind::run || !is_compute(instruction.op.kind)) continue;
      slots.push_back({instruction.op, instruction.paired});
      positions.push_back(static_cast<std::int64_t>(i));
    }
  }
  return order;
}

void verify_compute(const Problem& problem, const Schedule& schedule, Diagnostics& found) {
  rules::complete(problem, schedule, found);
  rules::order(problem, schedule, found);
  rules::phase(problem, schedule, found);
  rules::memory(problem, schedule, found);
}

bool is_ordered(const Diagnostics& found) {
  return std::ranges::none_of(found, [](const auto& d) { return d.rule == "order"; });
}

// Turns positions among a list's computes into positions in the list.
void count_all(const ComputeOrder& order, Diagnostics& faults) {
  for (Diagnostic& fault : faults) {
    if (!fault.rank || !fault.index) continue;
    fault.index = order.positions[static_cast<std::size_t>(*fault.rank)]
                                 [static_cast<std::size_t>(*fault.index)];
  }
}

// If a program completes under rendezvous it does under the other two: they ask for less. So the
// usual case costs one check.
std::vector<SemanticsVerdict> verdicts(const Program& program, const References& references) {
  const bool strictest = rules::completes(program, references, Semantics::rendezvous);
  std::vector<SemanticsVerdict> result;
  for (const Semantics semantics : kAllSemantics) {
    const bool known = strictest || semantics == Semantics::rendezvous;
    result.push_back(
        {semantics, known ? strictest : rules::completes(program, references, semantics)});
  }
  return result;
}

void verify_schedule(const Problem& problem, const Schedule& schedule, Diagnostics& found) {
  verify_compute(problem, schedule, found);
  // An order that breaks within a rank would show up again as a cycle.
  if (is_ordered(found)) rules::acyclic(problem, schedule, found);
}

// Everything about a program's messages and buffers but whether it completes.
void check_data(const Problem& problem, const Program& program, const References& references,
                Diagnostics& found) {
  rules::matching(problem, program, references, found);
  rules::group(program, found);
  rules::collective_order(program, found);
  rules::dataflow(problem, program, references, found);
  // What is wrong with a message is wrong with its buffers too: once is enough.
  if (!found.empty()) return;
  rules::buffers(problem, program, found);
  const bool named = found.empty();
  rules::races(program, references, found);
  if (!named) return;
  rules::reductions(problem, program, found);
  rules::parameters(problem, program, references, found);
  rules::snapshots(problem, program, found);
  rules::sharding(problem, program, references, found);
  rules::memory(problem, program, found);
}

std::launch launch(const Program& program) {
  return is_worth_threads(program) ? std::launch::async : std::launch::deferred;
}

void report_deadlocks(const Program& program, const References& references,
                      std::span<const Semantics> asked, ProgramVerdict& verdict) {
  for (const auto& [semantics, completes] : verdict.semantics) {
    if (!completes && std::ranges::find(asked, semantics) != asked.end()) {
      rules::deadlock(program, references, semantics, verdict.diagnostics);
    }
  }
}

void check_communication(const Problem& problem, const Program& program,
                         const References& references, std::span<const Semantics> asked,
                         ProgramVerdict& verdict) {
  // Two questions that share nothing.
  std::future<std::vector<SemanticsVerdict>> completes =
      std::async(launch(program), [&] { return verdicts(program, references); });
  check_data(problem, program, references, verdict.diagnostics);
  verdict.semantics = completes.get();
  report_deadlocks(program, references, asked, verdict);
}

// A program's compute on its own.
struct ComputeVerdict {
  Diagnostics diagnostics;
  bool in_range = false;  // so that messages and buffers can be looked at
};

ComputeVerdict check_compute(const Problem& problem, const Program& program) {
  ComputeVerdict verdict;
  const ComputeOrder order = compute_of(program);
  rules::range(problem, order.schedule, verdict.diagnostics);
  verdict.in_range = verdict.diagnostics.empty();
  if (verdict.in_range) verify_compute(problem, order.schedule, verdict.diagnostics);
  count_all(order, verdict.diagnostics);
  return verdict;
}

}  // namespace

Diagnostics verify(const Problem& problem, const Schedule& schedule) {
  Diagnostics found;
  rules::range(problem, schedule, found);
  if (found.empty()) verify_schedule(problem, schedule, found);
  return found;
}

Diagnostics verify(const Problem& problem, const ScheduleFile& file) {
  Diagnostics found;
  rules::range(problem, file, found);
  if (!found.empty()) return found;
  const ComputeOrder order = compute_of(file);
  verify_schedule(problem, order.schedule, found);
  count_all(order, found);
  rules::stage_actions(file, found);
  return found;
}

ProgramVerdict verify_communication(const Problem& problem, const Program& program,
                                    std::span<const Semantics> asked) {
  ProgramVerdict verdict;
  rules::form(problem, program, verdict.diagnostics);
  if (!verdict.diagnostics.empty()) return verdict;
  check_communication(problem, program, References(program), asked, verdict);
  return verdict;
}

ProgramVerdict verify(const Problem& problem, const Program& program,
                      std::span<const Semantics> asked) {
  ProgramVerdict verdict;
  rules::form(problem, program, verdict.diagnostics);
  if (!verdict.diagnostics.empty()) return verdict;
  std::future<ComputeVerdict> compute =
      std::async(launch(program), [&] { return check_compute(problem, program); });
  const References references(program);
  auto [diagnostics, in_range] = compute.get();
  verdict.diagnostics = std::move(diagnostics);
  if (in_range) check_communication(problem, program, references, asked, verdict);
  return verdict;
}

ProgramVerdict verify_alone(const Program& program, std::span<const Semantics> asked) {
  ProgramVerdict verdict;
  Diagnostics& found = verdict.diagnostics;
  rules::form(program, found);
  if (!found.empty()) return verdict;
  const References references(program);
  rules::matching(program, references, found);
  rules::group(program, found);
  rules::collective_order(program, found);
  if (found.empty()) rules::races(program, references, found);
  verdict.semantics = verdicts(program, references);
  report_deadlocks(program, references, asked, verdict);
  return verdict;
}

}  // namespace counterflow

#pragma once

#include <optional>
#include <span>
#include <vector>

#include "driver/plan.h"
#include "report/report.h"
#include "scheduler/ir/diagnostic.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"

// The way from a plan to its figures: check, run.
namespace counterflow {

// What verification says about a plan.
struct Verdict {
  Diagnostics order;    // of the order: index is a position in the schedule, or in the file's row
  Diagnostics program;  // of the lowered program: index is an instruction
  std::vector<SemanticsVerdict> semantics;  // all three; empty where nothing could be analysed
  std::optional<Program> lowered;           // there unless the order is too faulty to lower

  [[nodiscard]] bool ok() const { return order.empty() && program.empty(); }
};

// Verifies the order, lowers it and verifies the program; `asked`: the semantics whose deadlocks
// count as faults.
[[nodiscard]] Verdict check(const Plan& plan, std::span<const Semantics> asked,
                            const PassObserver& observer = {});

// A program that ran to its end in virtual time, and its figures.
struct Run {
  Program program;
  Timeline timeline;
  Report report;
};

// Simulates a program of the plan under its config's execution model. Throws FaultyError, with
// where each rank stands, if it gets stuck under that model.
[[nodiscard]] Timeline timeline_of(const Plan& plan, const Program& program);

// Simulates a checked plan under its config's execution model and fills in the whole report. Throws
// InfeasibleError, with the cycle, if the program gets stuck under that model.
[[nodiscard]] Run run(const Plan& plan, Program program);

// The whole report on a timeline of the plan's program.
[[nodiscard]] Report make_report(const Plan& plan, const Program& program,
                                 const Timeline& timeline);

}  // namespace counterflow

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "driver/faults.h"
#include "python/arrays.h"
#include "python/bind.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/copies.h"
#include "scheduler/problem/problem.h"
#include "scheduler/problem/scenario.h"
#include "simulator/simulate.h"

// simulator: a program in virtual time.
namespace counterflow::python {
namespace {

using SharedProgram = std::shared_ptr<Program>;

ProgramTimeline simulated(const SharedProgram& program, const Problem& one,
                          const ExecutionModel& execution, const Scenario& scenario) {
  const Problem problem = in_copies(one);
  check_same_shape(*program, problem);
  Simulation simulation = simulate(*program, problem.links, execution, scenario);
  if (!simulation.diagnostics.empty()) {
    const std::string text =
        fmt::format("the program gets stuck under execution '{}'\n{}", execution.name,
                    to_text(simulation.diagnostics, GridOf{to_csv(*program)}));
    throw FaultyError(text, std::move(simulation.diagnostics));
  }
  return {program, std::move(simulation.timeline), problem.limits.bytes};
}

const RankTimeline& rank_of(const ProgramTimeline& timeline, std::int64_t rank) {
  return timeline.times.ranks[checked_index(rank, timeline.times.ranks.size(), "rank")];
}

}  // namespace

void check_same_shape(const Program& program, const Problem& problem) {
  if (static_cast<int>(program.ranks.size()) == problem.ranks() &&
      program.stages == problem.stages() && program.microbatches == problem.microbatches) {
    return;
  }
  throw InputError(fmt::format(
      "the program has {} ranks, {} stages and {} microbatches, the problem {}, {} and {}",
      program.ranks.size(), program.stages, program.microbatches, problem.ranks(), problem.stages(),
      problem.microbatches));
}

void bind_timeline(py::module_& module) {
  py::class_<ProgramTimeline, std::shared_ptr<ProgramTimeline>>(
      module, "Timeline", "When every instruction of a program began and ended.")
      .def_readonly("program", &ProgramTimeline::program)
      .def_property_readonly("ranks", [](const ProgramTimeline& t) { return t.times.ranks.size(); })
      .def(
          "intervals",
          [](const py::object& self, std::int64_t rank) {
            return view(rank_of(self.cast<const ProgramTimeline&>(), rank).instructions, self);
          },
          py::arg("rank"))
      .def(
          "memory",
          [](const py::object& self, std::int64_t rank) {
            return view(rank_of(self.cast<const ProgramTimeline&>(), rank).memory, self);
          },
          py::arg("rank"))
      .def(
          "__eq__",
          [](const ProgramTimeline& a, const ProgramTimeline& b) {
            return a.times == b.times && *a.program == *b.program;
          },
          py::is_operator())
      .def("__repr__",
           [](const ProgramTimeline& t) {
             return fmt::format("<Timeline of {}: {} ranks, {} instructions>", t.program->schedule,
                                t.times.ranks.size(), t.program->size());
           })
      .def("_repr_html_", html("timeline"));
  module.def(
      "simulate",
      [](const SharedProgram& program, const Problem& problem, const ExecutionModel& execution,
         const Scenario& scenario) {
        return std::make_shared<ProgramTimeline>(simulated(program, problem, execution, scenario));
      },
      py::arg("program").none(false), py::arg("problem"), py::arg("execution"), py::arg("scenario"),
      WithoutLock());
}

}  // namespace counterflow::python

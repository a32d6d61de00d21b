#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/consecutive.h"
#include "driver/fault_text.h"
#include "driver/faults.h"
#include "driver/pipeline.h"
#include "driver/plan.h"
#include "python/bind.h"
#include "python/convert.h"
#include "report/consecutive_steps.h"
#include "scheduler/verify/repair.h"

// driver: from a config to its figures.
namespace counterflow::python {
namespace {

// What verification said, its program shared.
struct SharedVerdict {
  Verdict verdict;
  std::shared_ptr<Program> program;  // may be none
  std::string text;                  // of the faults, with the cells around them

  [[nodiscard]] Diagnostics faults() const {
    Diagnostics all = verdict.order;
    all.insert(all.end(), verdict.program.begin(), verdict.program.end());
    return all;
  }
};

std::vector<Semantics> asked_for(const std::string& name) {
  if (name == "all") return {std::begin(kAllSemantics), std::end(kAllSemantics)};
  return {semantics(name)};
}

SharedVerdict checked(const Plan& plan, const std::string& asked) {
  SharedVerdict shared{check(plan, asked_for(asked)), nullptr, {}};
  if (!shared.verdict.ok()) shared.text = faults_text(plan, shared.verdict);
  if (shared.verdict.lowered) {
    shared.program = std::make_shared<Program>(std::move(*shared.verdict.lowered));
    shared.verdict.lowered.reset();
  }
  return shared;
}

// The program that was lowered; throws FaultyError where it is not to be run.
Program faultless(const Plan& plan, Verdict verdict) {
  if (verdict.ok()) return std::move(*verdict.lowered);
  Diagnostics faults = verdict.order;
  faults.insert(faults.end(), verdict.program.begin(), verdict.program.end());
  throw FaultyError(faults_text(plan, verdict), std::move(faults));
}

Program compiled(const Plan& plan) {
  return faultless(plan, check(plan, kAllSemantics));
}

SharedRun shared(Run run, const Plan& plan) {
  auto program = std::make_shared<Program>(std::move(run.program));
  auto timeline = std::make_shared<ProgramTimeline>(
      ProgramTimeline{program, std::move(run.timeline), plan.whole().limits.bytes});
  return {std::move(program), std::move(timeline), std::make_shared<Report>(std::move(run.report))};
}

// One step, and with more the figures of so many one behind the other.
SharedRun run_steps(const Plan& plan, std::int64_t steps) {
  constexpr std::int64_t kMostSteps = 1000;
  if (steps < 1 || steps > kMostSteps) {
    throw InputError(fmt::format("steps {} is outside 1..{}", steps, kMostSteps));
  }
  const Program program = compiled(plan);
  Run one = run(plan, program);
  if (steps > 1) {
    const int count = static_cast<int>(steps);
    const Program all = faultless(plan, check_in_steps(plan, program, count, kAllSemantics));
    one.report.consecutive = measure_steps(all, timeline_of(plan, all), count);
  }
  return shared(std::move(one), plan);
}

// A program someone has changed, verified before it is run.
SharedRun run_program(const Plan& plan, const Program& program, const std::string& asked) {
  const Problem problem = plan.whole();
  if (static_cast<int>(program.ranks.size()) != problem.ranks() ||
      program.stages != problem.stages() || program.microbatches != problem.microbatches) {
    throw InputError("the program is of another problem: ranks, stages or microbatches differ");
  }
  ProgramVerdict found = verify(problem, program, asked_for(asked));
  if (!found.diagnostics.empty()) {
    const std::string text = fmt::format("the program of {} is faulty\n{}", program.schedule,
                                         to_text(found.diagnostics, GridOf{to_csv(program)}));
    throw FaultyError(text, std::move(found.diagnostics));
  }
  return shared(run(plan, program), plan);
}

Plan plan_of_schedule(Config config, Problem problem, Schedule schedule) {
  Plan plan;
  plan.config = std::move(config);
  plan.problem = with_keeping_of(std::move(problem), schedule);
  plan.schedule = std::move(schedule);
  return plan;
}

Plan plan_of_problem(const Problem& problem, const Schedule& schedule) {
  return plan_of_schedule({}, problem, schedule);
}

Plan plan_of_file(const Problem& problem, const ScheduleFile& file) {
  Plan plan = plan_of_schedule({}, problem, file.compute());
  plan.file = file;
  return plan;
}

PlacementKind placement_named(const std::string& name) {
  const auto kind = placement_kind(name);
  if (kind && *kind != PlacementKind::list) return *kind;
  throw InputError(
      fmt::format("unknown placement '{}'; there are loop, v, wave and bidirectional", name));
}

void bind_config(py::module_& module) {
  py::class_<Config>(module, "Config", "A config, read and checked value by value.")
      .def_readonly("file", &Config::file)
      .def_property_readonly("ranks", [](const Config& c) { return c.ranks.value; })
      .def_property_readonly("microbatches", [](const Config& c) { return c.microbatches.value; })
      .def_property_readonly("schedule", [](const Config& c) { return c.schedule.value; })
      .def_readonly("execution", &Config::execution)
      .def_readonly("jitter", &Config::jitter)
      .def("__repr__", [](const Config& c) {
        return fmt::format("<Config {}: {} ranks, {} microbatches, schedule {}>", c.file,
                           c.ranks.value, c.microbatches.value, c.schedule.value);
      });
  module.def("read_config", &read_config, py::arg("path"), py::arg("overrides"), WithoutLock());
  module.def(
      "parse_config",
      [](const std::string& text, const std::string& file, const Overrides& overrides) {
        return parse_config(text, file, overrides);
      },
      py::arg("text"), py::arg("file"), py::arg("overrides"), WithoutLock());
  module.def(
      "make_problem",
      [](const Config& config, const std::string& placement, std::int64_t chunks,
         bool forward_only) {
        if (chunks < 1 || chunks > kMaxStages) {
          throw InputError(fmt::format("chunks {} is outside 1..{}", chunks, kMaxStages));
        }
        return make_problem(config, placement_named(placement), static_cast<int>(chunks),
                            forward_only);
      },
      py::arg("config"), py::arg("placement"), py::arg("chunks"), py::arg("forward_only"),
      WithoutLock());
}

void bind_verdict(py::module_& module) {
  py::class_<SharedVerdict>(module, "Verdict", "What verification says of a schedule.")
      .def_property_readonly("ok", [](const SharedVerdict& v) { return v.verdict.ok(); })
      .def_property_readonly("diagnostics", &SharedVerdict::faults)
      .def_property_readonly("semantics",
                             [](const SharedVerdict& v) {
                               py::dict words;
                               for (const SemanticsVerdict& each : v.verdict.semantics) {
                                 words[py::str(std::string(name(each.semantics)))] =
                                     each.completes ? "ok" : "deadlock";
                               }
                               return words;
                             })
      .def_readonly("program", &SharedVerdict::program)
      .def("__bool__", [](const SharedVerdict& v) { return v.verdict.ok(); })
      .def("__str__",
           [](const SharedVerdict& v) { return v.verdict.ok() ? std::string("valid") : v.text; })
      .def("__repr__",
           [](const SharedVerdict& v) {
             return v.verdict.ok() ? std::string("<Verdict: valid>")
                                   : fmt::format("<Verdict: {} faults>", v.faults().size());
           })
      .def("_repr_html_", html("verdict"));
  module.def(
      "verify",
      [](const Problem& problem, const Schedule& schedule, const std::string& asked) {
        return checked(plan_of_problem(problem, schedule), asked);
      },
      py::arg("problem"), py::arg("schedule"), py::arg("semantics") = "all", WithoutLock());
  module.def(
      "verify_file",
      [](const Problem& problem, const ScheduleFile& file, const std::string& asked) {
        return checked(plan_of_file(problem, file), asked);
      },
      py::arg("problem"), py::arg("file"), py::arg("semantics") = "all", WithoutLock());
  module.def(
      "repair",
      [](const Problem& problem, const ScheduleFile& file) {
        return repair(with_keeping_of(problem, file.compute()), file);
      },
      py::arg("problem"), py::arg("file"), WithoutLock());
  module.def(
      "compile",
      [](const Problem& problem, const Schedule& schedule) {
        return compiled(plan_of_problem(problem, schedule));
      },
      py::arg("problem"), py::arg("schedule"), WithoutLock());
}

void bind_plan(py::module_& module) {
  py::class_<Plan>(module, "Plan", "A problem and the schedule chosen for it.")
      .def(py::init(&plan_of_schedule), py::arg("config"), py::arg("problem"), py::arg("schedule"))
      .def_readonly("config", &Plan::config)
      .def_readonly("problem", &Plan::problem)
      .def_readonly("schedule", &Plan::schedule)
      .def_readonly("file", &Plan::file)
      .def_readonly("notes", &Plan::notes)
      .def_property_readonly("family",
                             [](const Plan& plan) -> std::optional<std::string> {
                               if (plan.family == nullptr) return std::nullopt;
                               return std::string(plan.family->name);
                             })
      .def("verify", &checked, py::arg("semantics") = "all", WithoutLock())
      .def("compile", &compiled, WithoutLock())
      .def("run", &run_steps, py::arg("steps") = 1, WithoutLock())
      .def("run_program", &run_program, py::arg("program"), py::arg("semantics") = "all",
           WithoutLock())
      .def("__repr__",
           [](const Plan& plan) {
             return fmt::format("<Plan: {} on {} ranks, {} microbatches>", plan.schedule.name,
                                plan.problem.ranks(), plan.problem.microbatches);
           })
      .def("_repr_html_", html("plan"));
  module.def(
      "make_plan",
      [](const Config& config, const std::string& folder) {
        return make_plan(config, std::filesystem::path(folder));
      },
      py::arg("config"), py::arg("folder"), WithoutLock());
}

}  // namespace

void bind_driver(py::module_& module) {
  bind_config(module);
  bind_verdict(module);
  bind_plan(module);
}

}  // namespace counterflow::python

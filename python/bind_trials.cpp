#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "python/arrays.h"
#include "python/bind.h"
#include "scheduler/error.h"
#include "scheduler/problem/config.h"
#include "scheduler/problem/copies.h"
#include "scheduler/problem/jitter.h"
#include "scheduler/problem/problem.h"
#include "scheduler/problem/scenario.h"
#include "simulator/monte_carlo.h"

// simulator: many runs under jitter, and what disturbs them.
namespace counterflow::python {
namespace {

// A scenario names ranks and links of the problem.
Scenario scenario_of(const Problem& one, const std::string& text, const std::string& file) {
  const Problem problem = in_copies(one);
  Config config;
  config.ranks.value = problem.ranks();
  config.links = problem.links;
  return parse_scenario(text, file, config);
}

Trials trials_of(const Program& program, const Problem& one, const ExecutionModel& execution,
                 const Jitter& jitter, const Scenario& scenario, std::int64_t count,
                 std::optional<std::uint64_t> seed, std::int64_t threads, bool sensitivity) {
  const Problem problem = in_copies(one);
  check_same_shape(program, problem);
  constexpr std::int64_t kMost = 10'000'000;
  if (count < 1 || count > kMost) {
    throw InputError(fmt::format("trials {} is outside 1..{}", count, kMost));
  }
  return run_trials(program, problem.links, execution, jitter,
                    {.trials = static_cast<int>(count),
                     .seed = seed.value_or(jitter.seed),
                     .threads = checked_threads(threads),
                     .sensitivity = sensitivity},
                    scenario);
}

std::map<std::pair<Rank, Rank>, double> of_links(const Trials& trials) {
  std::map<std::pair<Rank, Rank>, double> links;
  for (const Trials::OfLink& link : trials.links) links[{link.from, link.to}] = link.sensitivity;
  return links;
}

std::vector<double> of_ranks(const Trials& trials) {
  std::vector<double> ranks;
  for (const Trials::OfRank& rank : trials.ranks) ranks.push_back(rank.sensitivity);
  return ranks;
}

std::int64_t quantile_ns(const Trials& trials, double q) {
  if (!(q >= 0 && q <= 1)) throw InputError(fmt::format("quantile {} is outside 0..1", q));
  return quantile(trials.makespans, q).count();
}

auto nanoseconds(Time Trials::*member) {
  return [member](const Trials& trials) { return (trials.*member).count(); };
}

void bind_disturbances(py::module_& module) {
  py::class_<Jitter>(module, "Jitter", "How durations vary from run to run.")
      .def_readonly("seed", &Jitter::seed)
      .def_property_readonly("varies", [](const Jitter& jitter) { return varies(jitter); })
      .def("__repr__", [](const Jitter& jitter) {
        return fmt::format("<Jitter: compute {}, transfer {}, seed {}>", jitter.compute.sigma,
                           jitter.transfer.sigma, jitter.seed);
      });
  py::class_<Scenario>(module, "Scenario", "What goes wrong during a run, and when.")
      .def_property_readonly("slowdowns", [](const Scenario& s) { return s.slowdowns.size(); })
      .def_property_readonly("failures", [](const Scenario& s) { return s.failures.size(); })
      .def("__repr__", [](const Scenario& s) {
        return fmt::format("<Scenario: {} slow-downs and outages, {} failures>", s.slowdowns.size(),
                           s.failures.size());
      });
  module.def(
      "parse_jitter",
      [](const Problem& problem, const std::string& text, const std::string& file) {
        return parse_jitter(text, file, in_copies(problem).ranks());
      },
      py::arg("problem"), py::arg("text"), py::arg("file"));
  module.def("parse_scenario", &scenario_of, py::arg("problem"), py::arg("text"), py::arg("file"));
}

}  // namespace

int checked_threads(std::int64_t threads) {
  constexpr std::int64_t kMost = 1024;
  if (threads < 0 || threads > kMost) {
    throw InputError(fmt::format("threads {} is outside 0..{}; 0: one a core", threads, kMost));
  }
  if (threads > 0) return static_cast<int>(threads);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void bind_trials(py::module_& module) {
  bind_disturbances(module);
  py::class_<Trials, std::shared_ptr<Trials>>(module, "Trials", "Many runs under jitter.")
      .def_readonly("seed", &Trials::seed)
      .def_readonly("mean_ns", &Trials::mean_ns)
      .def_property_readonly("min_ns", nanoseconds(&Trials::least))
      .def_property_readonly("p5_ns", nanoseconds(&Trials::p5))
      .def_property_readonly("p50_ns", nanoseconds(&Trials::median))
      .def_property_readonly("p95_ns", nanoseconds(&Trials::p95))
      .def_property_readonly("max_ns", nanoseconds(&Trials::most))
      .def("quantile_ns", &quantile_ns, py::arg("q"))
      .def_property_readonly(
          "makespans_ns",
          [](const py::object& self) { return view(self.cast<const Trials&>().makespans, self); })
      .def_property_readonly("rank_sensitivities", &of_ranks)
      .def_property_readonly("link_sensitivities", &of_links)
      .def_readonly("sensitivity_trials", &Trials::sensitivity_trials)
      .def_readonly("sensitivity_step", &Trials::sensitivity_step)
      .def("__len__", [](const Trials& trials) { return trials.count; })
      .def("__repr__",
           [](const Trials& trials) {
             return fmt::format("<Trials: {}, p5 {} ns, p50 {} ns, p95 {} ns>", trials.count,
                                trials.p5.count(), trials.median.count(), trials.p95.count());
           })
      .def("_repr_html_", html("trials"));
  module.def(
      "run_trials",
      [](const std::shared_ptr<Program>& program, const Problem& problem,
         const ExecutionModel& execution, const Jitter& jitter, const Scenario& scenario,
         std::int64_t count, std::optional<std::uint64_t> seed, std::int64_t threads,
         bool sensitivity) {
        return std::make_shared<Trials>(trials_of(*program, problem, execution, jitter, scenario,
                                                  count, seed, threads, sensitivity));
      },
      py::arg("program").none(false), py::arg("problem"), py::arg("execution"), py::arg("jitter"),
      py::arg("scenario"), py::arg("trials"), py::arg("seed"), py::arg("threads"),
      py::arg("sensitivity"), WithoutLock());
}

}  // namespace counterflow::python

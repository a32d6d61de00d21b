#include <fmt/format.h>
#include <pybind11/functional.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/auto_schedule.h"
#include "driver/plan.h"
#include "driver/robust_search.h"
#include "python/bind.h"
#include "scheduler/error.h"
#include "scheduler/search/choices.h"

// scheduler/search: the best order found, by the makespan or by what it stands.
namespace counterflow::python {
namespace {

using Objective = std::function<double(const Schedule&)>;  // ns

struct SearchOutcome {
  SearchResult result;
  bool has_objective = false;
  std::optional<Robustness> robustness;
};

Time to_time(double nanoseconds) {
  constexpr double kMost = 0x1p62;
  if (std::isnan(nanoseconds)) throw InputError("the objective of an order is not a number");
  if (std::abs(nanoseconds) >= kMost) return nanoseconds > 0 ? Time::max() : Time::min();
  return Time{std::llround(nanoseconds)};
}

SearchBudget budget_of(std::optional<std::int64_t> iterations, std::optional<double> seconds,
                       std::uint64_t seed, bool span) {
  SearchBudget budget;
  budget.seed = seed;
  if (span) budget.goal = SearchGoal::span;
  if (iterations && seconds) {
    throw InputError("iterations and seconds are two budgets; give one of them");
  }
  if (iterations) {
    if (*iterations < 1) throw InputError(fmt::format("iterations {} is below 1", *iterations));
    budget.iterations = *iterations;
  }
  if (seconds) {
    constexpr double kMost = 1e6;
    if (!(*seconds > 0 && *seconds <= kMost)) {
      throw InputError(fmt::format("seconds {} is not above 0 and up to {}", *seconds, kMost));
    }
    budget.time = Time{std::llround(*seconds * 1e9)};
  }
  return budget;
}

std::vector<Schedule> with_families(const Problem& problem, std::vector<Schedule> seeds) {
  for (Schedule& family : family_schedules(problem)) seeds.push_back(std::move(family));
  return seeds;
}

SearchOutcome search_plain(const Problem& problem, const std::vector<Schedule>& seeds,
                           std::optional<std::int64_t> iterations, std::optional<double> seconds,
                           std::uint64_t seed, bool span, const Objective& objective) {
  const SearchBudget budget = budget_of(iterations, seconds, seed, span);
  const std::vector<Schedule> all = with_families(problem, seeds);
  if (!objective) return {search_choices(problem, all, budget).result, false, std::nullopt};
  const SearchObjective judge = [&](const Schedule& order) { return to_time(objective(order)); };
  ChosenSearch found = search_choices_by(
      problem, all, budget,
      [&](const Problem& chosen, std::span<const Schedule> its, const SearchBudget& share) {
        return search(chosen, its, share, judge);
      });
  return {std::move(found.result), true, std::nullopt};
}

SearchOutcome search_robust(const Problem& problem, const std::vector<Schedule>& seeds,
                            std::optional<std::int64_t> iterations, std::optional<double> seconds,
                            std::uint64_t seed, const ExecutionModel& execution,
                            const std::optional<Jitter>& jitter, const Scenario& scenario, bool p95,
                            std::int64_t trials, std::optional<std::uint64_t> draws,
                            std::int64_t threads) {
  constexpr std::int64_t kMost = 10'000'000;
  if (trials < 0 || trials > kMost) {
    throw InputError(fmt::format("trials {} is outside 1..{}", trials, kMost));
  }
  Plan plan;
  plan.problem = problem;
  plan.config.execution = execution;
  plan.config.jitter = jitter;
  RobustGoal goal;
  goal.p95 = p95;
  goal.scenario = scenario;
  goal.trials = static_cast<int>(trials);
  goal.seed = draws;
  goal.threads = checked_threads(threads);
  RobustSearch found = robust_search(plan, with_families(problem, seeds),
                                     budget_of(iterations, seconds, seed, false), goal);
  return {std::move(found.result), true, std::move(found.robustness)};
}

double gap(const SearchResult& result) {
  if (result.lower_bound.count() == 0) return 0;
  return static_cast<double>(result.makespan.count()) /
             static_cast<double>(result.lower_bound.count()) -
         1;
}

void bind_robustness(py::module_& module) {
  using Figures = Robustness::Figures;
  py::class_<Figures>(module, "DisturbedFigures", "An order undisturbed, and over the trials.")
      .def_property_readonly("makespan_ns", [](const Figures& f) { return f.makespan.count(); })
      .def_property_readonly("mean_ns", [](const Figures& f) { return f.mean.count(); })
      .def_property_readonly("p95_ns", [](const Figures& f) { return f.p95.count(); })
      .def("__repr__", [](const Figures& f) {
        return fmt::format("<DisturbedFigures: makespan {} ns, mean {} ns, p95 {} ns>",
                           f.makespan.count(), f.mean.count(), f.p95.count());
      });
  py::class_<Robustness>(module, "Robustness", "What an order stands, and what that costs.")
      .def_readonly("goal", &Robustness::goal)
      .def_readonly("trials", &Robustness::trials)
      .def_readonly("seed", &Robustness::seed)
      .def_readonly("chosen", &Robustness::chosen)
      .def_readonly("fastest", &Robustness::fastest)
      .def_property_readonly("price_ns", [](const Robustness& r) { return r.price().count(); })
      .def_property_readonly("gain_ns", [](const Robustness& r) { return r.gain().count(); })
      .def("__repr__", [](const Robustness& r) {
        return fmt::format("<Robustness: {} better by {} ns, undisturbed slower by {} ns>", r.goal,
                           r.gain().count(), r.price().count());
      });
}

void bind_result(py::module_& module) {
  py::class_<SearchOutcome>(module, "SearchResult", "The best order found.")
      .def_property_readonly("schedule", [](const SearchOutcome& s) { return s.result.schedule; })
      .def_property_readonly("makespan_ns",
                             [](const SearchOutcome& s) { return s.result.makespan.count(); })
      .def_property_readonly("lower_bound_ns",
                             [](const SearchOutcome& s) { return s.result.lower_bound.count(); })
      .def_property_readonly(
          "lower_bound_by",
          [](const SearchOutcome& s) { return std::string(s.result.bound_argument); })
      .def_property_readonly("gap", [](const SearchOutcome& s) { return gap(s.result); })
      .def_property_readonly("is_optimal",
                             [](const SearchOutcome& s) { return s.result.is_optimal(); })
      .def_property_readonly("iterations",
                             [](const SearchOutcome& s) { return s.result.iterations; })
      .def_property_readonly("found_by", [](const SearchOutcome& s) { return s.result.found_by; })
      .def_property_readonly("best_makespan_ns",
                             [](const SearchOutcome& s) { return s.result.best_makespan.count(); })
      .def_property_readonly("fastest",
                             [](const SearchOutcome& s) {
                               return s.has_objective ? s.result.fastest : s.result.schedule;
                             })
      .def_property_readonly("objective_ns",
                             [](const SearchOutcome& s) -> std::optional<std::int64_t> {
                               if (!s.has_objective) return std::nullopt;
                               return s.result.objective.count();
                             })
      .def_readonly("robustness", &SearchOutcome::robustness)
      .def("__repr__",
           [](const SearchOutcome& s) {
             return fmt::format("<SearchResult: makespan {} ns, bound {} ns, found by {}>",
                                s.result.makespan.count(), s.result.lower_bound.count(),
                                s.result.found_by);
           })
      .def("_repr_html_", html("search_result"));
}

}  // namespace

void bind_search(py::module_& module) {
  bind_robustness(module);
  bind_result(module);
  module.def("search", &search_plain, py::arg("problem"), py::arg("seeds"), py::arg("iterations"),
             py::arg("seconds"), py::arg("seed"), py::arg("span"), py::arg("objective"),
             WithoutLock());
  module.def("search_robust", &search_robust, py::arg("problem"), py::arg("seeds"),
             py::arg("iterations"), py::arg("seconds"), py::arg("seed"), py::arg("execution"),
             py::arg("jitter"), py::arg("scenario"), py::arg("p95"), py::arg("trials"),
             py::arg("draws"), py::arg("threads"), WithoutLock());
}

}  // namespace counterflow::python

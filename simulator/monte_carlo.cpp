#include "simulator/monte_carlo.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "scheduler/error.h"
#include "scheduler/passes/compile.h"
#include "simulator/engine.h"

namespace counterflow {
namespace {

using sim::Index;

bool is_pipeline_work(const Instruction& instruction) {
  return instruction.kind == InstructionKind::run &&
         (instruction.op.kind == OpKind::forward || is_backward(instruction.op.kind));
}

}  // namespace

struct TrialRunner::Shared {
  Shared(const Program& program, const Links& links, const ExecutionModel& execution,
         const Jitter& jitter, std::uint64_t seed, const Scenario& scenario)
      : wiring(program, links, execution),
        noise(wiring, jitter, seed),
        disturbances(scenario, links, program.ranks.size()),
        disturbed(!scenario.slowdowns.empty() || !scenario.failures.empty()) {
    for (Index index = 0; index < wiring.size(); ++index) {
      if (is_pipeline_work(wiring.instruction(index))) work.push_back(index);
    }
  }
  sim::Wiring wiring;
  sim::Noise noise;
  sim::Disturbances disturbances;
  bool disturbed;
  std::vector<Index> work;  // what the makespan spans
};

struct TrialRunner::Worker {
  explicit Worker(const Shared& shared)
      : engine(shared.wiring, shared.disturbed ? &shared.disturbances : nullptr) {}

  Time makespan(const Shared& shared, std::uint64_t trial, const Perturbation& perturbation) {
    shared.noise.draw(trial, perturbation, durations, stretch);
    engine.run({durations, stretch});
    if (!engine.completed()) return Time{-1};
    if (shared.work.empty()) return Time{0};
    Time first = Time::max();
    Time last{0};
    for (const Index index : shared.work) {
      first = std::min(first, engine.times()[index].begin);
      last = std::max(last, engine.times()[index].end);
    }
    return last - first;
  }

  sim::Engine engine;
  std::vector<std::int64_t> durations;
  std::vector<double> stretch;
};

TrialRunner::TrialRunner(const Program& program, const Links& links,
                         const ExecutionModel& execution, const Jitter& jitter, std::uint64_t seed,
                         const Scenario& scenario)
    : shared_(std::make_unique<Shared>(program, links, execution, jitter, seed, scenario)) {}
TrialRunner::~TrialRunner() = default;
TrialRunner::TrialRunner(TrialRunner&&) noexcept = default;

TrialRunner::Worker& TrialRunner::worker(std::size_t number) {
  while (workers_.size() <= number) workers_.push_back(std::make_unique<Worker>(*shared_));
  return *workers_[number];
}

Time TrialRunner::makespan(std::uint64_t trial, const Perturbation& perturbation) {
  return worker(0).makespan(*shared_, trial, perturbation);
}

std::vector<Time> TrialRunner::makespans(std::uint64_t first, int count, int threads,
                                         const Perturbation& perturbation) {
  std::vector<Time> results(static_cast<std::size_t>(count));
  std::atomic<std::size_t> next{0};
  const auto work = [&](Worker& mine) {
    for (std::size_t i = next++; i < results.size(); i = next++) {
      results[i] = mine.makespan(*shared_, first + i, perturbation);
    }
  };
  const auto helpers = static_cast<std::size_t>(std::clamp(threads, 1, std::max(count, 1)) - 1);
  (void)worker(helpers);  // made before any thread looks
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i <= helpers; ++i) {
    others.emplace_back([&work, &mine = *workers_[i]] { work(mine); });
  }
  work(*workers_[0]);
  others.clear();  // joins
  return results;
}

std::vector<std::pair<Rank, Rank>> TrialRunner::pairs() const {
  const Links& links = shared_->wiring.links();
  std::set<std::pair<Rank, Rank>> pairs;
  const auto& ranks = shared_->wiring.program().ranks;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Transfer& transfer : ranks[rank].transfers) {
      if (!transfer.is_send || transfer.peer == rank) continue;
      const std::pair pair{static_cast<Rank>(rank), Rank{transfer.peer}};
      const bool takes_time = links.latency(pair.first, pair.second) > Time{0} ||
                              (!links.only_latency() && transfer.size.value > 0);
      if (takes_time) pairs.insert(pair);
    }
  }
  return {pairs.begin(), pairs.end()};
}

Time quantile(std::vector<Time> values, double q) {
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  const auto place =
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(rank) - 1, 0, std::ssize(values) - 1);
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<std::size_t>(place)];
}

namespace {

double mean_ns(const std::vector<Time>& values) {
  double sum = 0;
  for (const Time value : values) sum += static_cast<double>(value.count());
  return sum / static_cast<double>(values.size());
}

void check_complete(const std::vector<Time>& makespans) {
  const auto stuck = std::ranges::find(makespans, Time{-1});
  if (stuck == makespans.end()) return;
  throw InfeasibleError(
      fmt::format("trial {} does not come to its end; simulate without trials to see what stops it",
                  stuck - makespans.begin()));
}

// Fills in ranks and links: what each costs when it is a little slower, on the same draws.
void find_sensitivities(TrialRunner& runner, const std::vector<Time>& makespans, std::size_t ranks,
                        int threads, Trials& trials) {
  constexpr double kStep = 0.01;
  using What = TrialRunner::Perturbation::What;
  const auto pairs = runner.pairs();
  const int things = static_cast<int>(ranks + pairs.size());
  const int draws = std::min(trials.count, std::max(1, trials.count / things));
  trials.sensitivity_trials = draws;
  trials.sensitivity_step = kStep;
  const double base = mean_ns({makespans.begin(), makespans.begin() + draws});
  const auto measured = [&](What what, Rank from, Rank to) {
    const auto slower = runner.makespans(0, draws, threads, {what, from, to, 1 + kStep});
    return base > 0 ? (mean_ns(slower) - base) / (kStep * base) : 0.0;
  };
  for (Rank rank = 0; rank < static_cast<Rank>(ranks); ++rank) {
    trials.ranks.push_back({rank, measured(What::rank, rank, rank)});
  }
  for (const auto& [from, to] : pairs) {
    trials.links.push_back({from, to, measured(What::link, from, to)});
  }
}

}  // namespace

Trials run_trials(const Program& program, const Links& links, const ExecutionModel& execution,
                  const Jitter& jitter, const TrialOptions& options, const Scenario& scenario) {
  TrialRunner runner(program, links, execution, jitter, options.seed, scenario);
  std::vector<Time> makespans = runner.makespans(0, options.trials, options.threads);
  check_complete(makespans);
  Trials trials;
  trials.count = options.trials;
  trials.seed = options.seed;
  trials.mean_ns = mean_ns(makespans);
  trials.least = quantile(makespans, 0);
  trials.p5 = quantile(makespans, 0.05);
  trials.median = quantile(makespans, 0.5);
  trials.p95 = quantile(makespans, 0.95);
  trials.most = quantile(makespans, 1);
  if (options.sensitivity) {
    find_sensitivities(runner, makespans, program.ranks.size(), options.threads, trials);
  }
  trials.makespans = std::move(makespans);
  return trials;
}

Time mean(const std::vector<Time>& values) {
  return Time{std::llround(mean_ns(values))};
}

std::function<Time(const Schedule&)> makespan_under(const Problem& problem,
                                                    const ExecutionModel& execution,
                                                    const Jitter& jitter, const Scenario& scenario,
                                                    const DisturbedMakespan& what) {
  return [&problem, execution, jitter, scenario, what](const Schedule& schedule) {
    Program program;
    try {
      program = compile(problem, schedule);
    } catch (const InfeasibleError&) {
      return Time::max();
    }
    TrialRunner runner(program, problem.links, execution, jitter, what.seed, scenario);
    std::vector<Time> makespans = runner.makespans(0, what.trials, 1);
    if (std::ranges::find(makespans, Time{-1}) != makespans.end()) return Time::max();
    return what.quantile ? quantile(std::move(makespans), *what.quantile) : mean(makespans);
  };
}

}  // namespace counterflow

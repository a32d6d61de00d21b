#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/format.h"
#include "report/report.h"

namespace counterflow {
namespace {

std::string counted(int n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing,
                     n == 1                                    ? ""
                     : std::string_view(thing) == "microbatch" ? "es"
                                                               : "s");
}

void append_line(std::string& out, std::string_view name, std::string_view value,
                 std::string_view note = {}) {
  fmt::format_to(std::back_inserter(out), "  {:<14}{:>12}", name, value);
  if (!note.empty()) fmt::format_to(std::back_inserter(out), "   {}", note);
  out += '\n';
}

void append_figures(std::string& out, const Report& report) {
  std::string bound;
  if (report.lower_bound.count() > 0) {
    const std::string by =
        report.bound_argument.empty() ? "" : fmt::format(" ({})", report.bound_argument);
    bound = fmt::format("lower bound {}{}, gap {}", readable_time(report.lower_bound), by,
                        readable_share(report.gap));
  }
  append_line(out, "makespan", readable_time(report.makespan), bound);
  append_line(out, "bubble", readable_share(report.bubble_fraction), "idle share of all ranks");
  append_line(out, "span bubble", readable_share(report.span_bubble_fraction),
              fmt::format("of the longest rank, {}", readable_time(report.span)));
  if (report.step) {
    append_line(out, "whole step", readable_time(*report.step), "with reductions and optimizer");
  }
  if (report.formula_idle) {
    append_line(out, "formula idle", readable_time(*report.formula_idle), report.formula_source);
  }
  const auto append_stages = [&](std::string_view what, const std::vector<Stage>& stages) {
    if (stages.empty()) return;
    append_line(out, what, counted(static_cast<int>(stages.size()), "stage"),
                readable_list(stages));
  };
  append_stages("recompute", report.recompute);
  append_stages("offload", report.offload);
}

void append_consecutive(std::string& out, const ConsecutiveSteps& consecutive) {
  append_line(out, "steady step", readable_time(consecutive.step),
              fmt::format("of {} consecutive ones, all {}", consecutive.steps,
                          readable_time(consecutive.makespan)));
  const auto most = std::ranges::max_element(consecutive.peak_memory);
  if (most != consecutive.peak_memory.end() && most->value > 0) {
    append_line(out, "  most held", readable_bytes(*most),
                fmt::format("over all steps, by rank {}", most - consecutive.peak_memory.begin()));
  }
}

void append_trials(std::string& out, const Trials& trials) {
  append_line(out, "under jitter", readable_time(trials.median),
              fmt::format("median of {} trials, seed {}; mean {}", trials.count, trials.seed,
                          readable_time(Time{std::llround(trials.mean_ns)})));
  append_line(out, "  p5 to p95", readable_time(trials.p5),
              fmt::format("to {}; least {}, most {}", readable_time(trials.p95),
                          readable_time(trials.least), readable_time(trials.most)));
  std::vector<std::pair<double, std::string>> all;
  for (const Trials::OfRank& rank : trials.ranks) {
    all.emplace_back(rank.sensitivity, fmt::format("rank {}", rank.rank));
  }
  for (const Trials::OfLink& link : trials.links) {
    all.emplace_back(link.sensitivity, fmt::format("link {}-{}", link.from, link.to));
  }
  std::ranges::stable_sort(all, std::greater{}, &std::pair<double, std::string>::first);
  constexpr std::size_t kMostShown = 3;
  std::string most;
  for (std::size_t i = 0; i < std::min(kMostShown, all.size()); ++i) {
    most += fmt::format("{}{} {:.2f}", i > 0 ? ", " : "", all[i].second, all[i].first);
  }
  if (!most.empty()) append_line(out, "  most felt", "", "1% slower costs, in %: " + most);
}

// A figure of the chosen order beside the fastest one's.
void append_beside(std::string& out, std::string_view name, Time chosen, Time fastest,
                   std::string_view note = {}) {
  const double share = fastest.count() == 0 ? 0.0
                                            : static_cast<double>((chosen - fastest).count()) /
                                                  static_cast<double>(fastest.count());
  append_line(
      out, name, readable_time(chosen),
      fmt::format("fastest order {}: {:+.2f} %{}", readable_time(fastest), 100 * share, note));
}

void append_robustness(std::string& out, const Robustness& robustness) {
  const Robustness::Figures& chosen = robustness.chosen;
  const Robustness::Figures& fastest = robustness.fastest;
  append_beside(out, "undisturbed", chosen.makespan, fastest.makespan, ", the price");
  const std::string goal = ", the goal";
  append_beside(out, "mean", chosen.mean, fastest.mean, robustness.goal == "mean" ? goal : "");
  append_beside(out, "p95", chosen.p95, fastest.p95, robustness.goal == "p95" ? goal : "");
  append_line(out, "disturbed by", "",
              fmt::format("{}{} trial{}, seed {}",
                          robustness.scenario.empty() ? "" : robustness.scenario + ", ",
                          robustness.trials, robustness.trials == 1 ? "" : "s", robustness.seed));
}

void append_rank(std::string& out, std::size_t r, const RankReport& rank) {
  fmt::format_to(std::back_inserter(out), "  {:>4}{:>8}{:>12}{:>12}{:>13}{:>11}{:>13}{:>14}\n", r,
                 rank.stages_held, readable_time(rank.busy), readable_time(rank.idle),
                 rank.peak_activations, rank.peak_in_flight, readable_bytes(rank.peak_memory),
                 readable_time(rank.comm_exposed));
}

// Many ranks: the first and the last few.
constexpr std::size_t kMostRanks = 16;
constexpr std::size_t kFirstRanks = 8;
constexpr std::size_t kLastRanks = 4;

void append_ranks(std::string& out, const Report& report) {
  fmt::format_to(std::back_inserter(out), "\n  {:>4}{:>8}{:>12}{:>12}{:>13}{:>11}{:>13}{:>14}\n",
                 "rank", "stages", "busy", "idle", "activations", "in flight", "memory",
                 "exposed comm");
  const std::size_t ranks = report.per_rank.size();
  for (std::size_t r = 0; r < ranks; ++r) {
    if (ranks > kMostRanks && r == kFirstRanks) {
      r = ranks - kLastRanks;
      fmt::format_to(std::back_inserter(out), "  {:>4}  ranks {} to {} left out\n", "...",
                     kFirstRanks, r - 1);
    }
    append_rank(out, r, report.per_rank[r]);
  }
}

}  // namespace

std::string summary(const Report& report) {
  std::string out = fmt::format("{}: {}, {}, {}, {}\n", report.schedule,
                                counted(report.ranks, "rank"), counted(report.stages, "stage"),
                                counted(report.microbatches, "microbatch"), report.execution);
  append_figures(out, report);
  if (report.consecutive) append_consecutive(out, *report.consecutive);
  if (report.trials) append_trials(out, *report.trials);
  if (report.robustness) append_robustness(out, *report.robustness);
  append_ranks(out, report);
  for (const std::string& note : report.notes) {
    fmt::format_to(std::back_inserter(out), "  note: {}\n", note);
  }
  for (const std::string& warning : report.warnings) {
    fmt::format_to(std::back_inserter(out), "  warning: {}\n", warning);
  }
  return out;
}

}  // namespace counterflow

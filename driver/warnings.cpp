#include "driver/warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

namespace counterflow {
namespace {

// From this ratio on, the difference between the fullest and the emptiest rank is worth a word.
constexpr std::int64_t kUnevenMemory = 2;

// The microbatches of the shortest and of the longest phase that trains.
std::pair<int, int> least_and_most(const Plan& plan) {
  const std::vector<int> counts = trained_microbatches(plan.config);
  if (!plan.config.phases || counts.empty())
    return {plan.problem.microbatches, plan.problem.microbatches};
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return {*least, *most};
}

void few_microbatches(const Plan& plan, const Report& report, std::vector<std::string>& out) {
  const int p = plan.problem.ranks();
  const int m = least_and_most(plan).first;
  const int v = plan.problem.stages() / p;
  if (m >= p || plan.problem.forward_only) return;
  const bool can_lower_chunks = v > 1 && plan.family != nullptr && plan.family->takes_chunks;
  const std::string other =
      can_lower_chunks ? "1 stage a rank (v=1: schedule 1f1b, pipeline.chunks 1)"
                       : fmt::format("at most {} rank{} (pipeline.ranks)", m, m == 1 ? "" : "s");
  out.push_back(fmt::format(
      "p={} ranks, v={} stage{} a rank, m={} microbatch{}: with m < p the bubble is {:.1f}% of the "
      "ranks' time. Two ways out: m >= {} (pipeline.microbatches), or {}.",
      p, v, v == 1 ? "" : "s", m, m == 1 ? "" : "es", 100 * report.bubble_fraction, p, other));
}

// ZB-H2 and ZB-V fill their first bubble with forwards, which takes 2p-1 of them.
void short_warm_up(const Plan& plan, std::vector<std::string>& out) {
  if (plan.family == nullptr) return;
  const std::string_view name = plan.family->name;
  if (name != "zb-h2" && name != "zbv") return;
  const int needed = 2 * plan.problem.ranks() - 1;
  const int microbatches = least_and_most(plan).first;
  if (microbatches >= needed) return;
  out.push_back(
      fmt::format("{} has its shape from m >= 2p-1 = {} microbatches on; with {} another "
                  "family may be faster: try zb-h1, or schedule auto.",
                  name, needed, microbatches));
}

bool is_chain(const StageGraph& graph) {
  for (Stage s = 0; s + 1 < graph.stages(); ++s) {
    if (graph.successors(s).size() != 1 || !graph.has_edge(s, s + 1)) return false;
  }
  return true;
}

// The ranks with a stage that is trained: of the others an activation is soon done with.
std::vector<Rank> trained_ranks(const Problem& problem) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    const auto chunks = problem.placement.chunks_of(rank);
    const bool trained = std::any_of(chunks.begin(), chunks.end(), [&](const Chunk& chunk) {
      return problem.needs_backward_weight(chunk.stage);
    });
    if (trained) ranks.push_back(rank);
  }
  return ranks;
}

void uneven_memory(const Plan& plan, const Report& report, std::vector<std::string>& out) {
  const Problem& problem = plan.problem;
  const auto peak = [&](Rank rank) {
    return report.per_rank[static_cast<std::size_t>(rank)].peak_activations;
  };
  const std::vector<Rank> ranks = trained_ranks(problem);
  if (ranks.empty()) return;  // forward-only, or all frozen
  const auto [low, high] = std::minmax_element(ranks.begin(), ranks.end(),
                                               [&](Rank a, Rank b) { return peak(a) < peak(b); });
  if (peak(*high) < kUnevenMemory * std::max<std::int64_t>(1, peak(*low))) return;
  const bool chain = is_chain(problem.graph);
  const int most = least_and_most(plan).second;
  const auto as_1f1b = [&](Rank rank) {
    return peak(rank) == std::min(most, problem.ranks() - rank);
  };
  const bool by_1f1b = chain && plan.family != nullptr && plan.family->name == "1f1b" &&
                       as_1f1b(*low) && as_1f1b(*high);
  out.push_back(fmt::format(
      "activation memory is uneven: rank {} holds up to {} stage-microbatches, rank {} only {}{}. "
      "{}ecomputing activations lowers all.",
      *high, peak(*high), *low, peak(*low),
      by_1f1b ? ", as 1F1B keeps min(m, p-r) microbatches in flight on rank r" : "",
      chain ? "zbv and dualpipev hold as many on every rank; r" : "R"));
}

void doubled_parameters(const Plan& plan, std::vector<std::string>& out) {
  if (plan.problem.placement.replicas() < 2) return;
  const int p = plan.problem.ranks();
  out.push_back(
      fmt::format("{} ranks hold {} stages twice, 2 stages' parameters a rank (2x). "
                  "dualpipev runs the same on half the ranks with parameters once.",
                  p, plan.problem.stages()));
}

// Ways to hold less that the config offers and this schedule does not take, unasked.
void unused_choice(const Plan& plan, std::vector<std::string>& out) {
  const Config& config = plan.config;
  const bool both = config.recompute && config.offload;
  if (!config.recompute && !config.offload) return;
  const std::string what = both               ? "stages.recompute and stages.offload are"
                           : config.recompute ? "stages.recompute is"
                                              : "stages.offload is";
  if (plan.problem.forward_only) {
    out.push_back(fmt::format("{} not used: without a backward nothing is held for it.", what));
    return;
  }
  const bool searched = plan.family == nullptr && !plan.file;
  if (searched || !plan.problem.keeping.empty()) return;
  out.push_back(
      fmt::format("{} not used: this schedule keeps all activations. `counterflow search` chooses "
                  "which stages hold less; always: all makes every stage.",
                  what));
}

void unused_optimizer(const Plan& plan, std::vector<std::string>& out) {
  const Problem& problem = plan.problem;
  if (!problem.optimizer || problem.optimizer->sharding) return;
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    if (problem.needs_backward_weight(stage)) return;
  }
  out.emplace_back("the optimizer section has nothing to do: no stage is trained.");
}

// Searches and `auto` know one pipeline, and of it the static share alone.
void unseen_gathers(const Plan& plan, std::vector<std::string>& out) {
  const auto& optimizer = plan.problem.optimizer;
  const bool chosen =
      plan.config.schedule.value == "auto" || (plan.family == nullptr && !plan.file);
  if (!optimizer || !optimizer->sharding || !chosen) return;
  out.emplace_back(
      "optimizer.fsdp: the order was chosen, and a goal worked out, without gathers and what they "
      "hold; makespan and memory here have them.");
}

// UNSHARD, STEP and the like in a file that leaves communication to be inferred.
void unused_actions(const Plan& plan, std::vector<std::string>& out) {
  if (!plan.file || plan.brings_communication()) return;
  std::set<std::string_view> unused;
  for (const auto& row : plan.file->rows) {
    for (const Action& action : row) {
      if (!has_microbatch(action.op.kind)) unused.insert(token(action.op.kind));
    }
  }
  if (unused.empty()) return;
  out.push_back(fmt::format(
      "{} in the file not used: without its transfers it says the order of computes. {}",
      fmt::join(unused, ", "),
      plan.problem.optimizer ? "What follows the last gradient comes from the optimizer section."
                             : "An optimizer section adds reductions and steps."));
}

}  // namespace

std::vector<std::string> warnings(const Plan& plan, const Report& report) {
  std::vector<std::string> out = plan.warnings;
  few_microbatches(plan, report, out);
  short_warm_up(plan, out);
  uneven_memory(plan, report, out);
  doubled_parameters(plan, out);
  unused_choice(plan, out);
  unused_optimizer(plan, out);
  unseen_gathers(plan, out);
  unused_actions(plan, out);
  return out;
}

}  // namespace counterflow

#include "tools/warnings.h"

#include <fmt/format.h>

#include <algorithm>

namespace counterflow {
namespace {

// From this ratio on, the difference between the fullest and the emptiest rank is worth a word.
constexpr std::int64_t kUnevenMemory = 2;

void few_microbatches(const Plan& plan, const Report& report, std::vector<std::string>& out) {
  const int p = plan.problem.ranks();
  const int m = plan.problem.microbatches;
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
  if (plan.problem.microbatches >= needed) return;
  out.push_back(
      fmt::format("{} has its shape from m >= 2p-1 = {} microbatches on; with {} another "
                  "family may be faster: try zb-h1, or schedule auto.",
                  name, needed, plan.problem.microbatches));
}

void uneven_memory(const Plan& plan, const Report& report, std::vector<std::string>& out) {
  const auto by_peak = [](const RankReport& a, const RankReport& b) {
    return a.peak_activations < b.peak_activations;
  };
  const auto [low, high] =
      std::minmax_element(report.per_rank.begin(), report.per_rank.end(), by_peak);
  if (low == high || plan.problem.forward_only) return;
  if (high->peak_activations < kUnevenMemory * std::max<std::int64_t>(1, low->peak_activations)) {
    return;
  }
  const bool is_1f1b = plan.family != nullptr && plan.family->name == "1f1b";
  out.push_back(fmt::format(
      "activation memory is uneven: rank {} holds up to {} stage-microbatches, rank {} only {}{}. "
      "zbv and dualpipev hold as many on every rank; recomputing activations lowers all.",
      high - report.per_rank.begin(), high->peak_activations, low - report.per_rank.begin(),
      low->peak_activations,
      is_1f1b ? ", as 1F1B keeps min(m, p-r) microbatches in flight on rank r" : ""));
}

void doubled_parameters(const Plan& plan, std::vector<std::string>& out) {
  if (plan.problem.placement.replicas() < 2) return;
  const int p = plan.problem.ranks();
  out.push_back(
      fmt::format("{} ranks hold {} stages twice, 2 stages' parameters a rank (2x). "
                  "dualpipev runs the same on half the ranks with parameters once.",
                  p, plan.problem.stages()));
}

}  // namespace

std::vector<std::string> warnings(const Plan& plan, const Report& report) {
  std::vector<std::string> out = plan.notes;
  few_microbatches(plan, report, out);
  short_warm_up(plan, out);
  uneven_memory(plan, report, out);
  doubled_parameters(plan, out);
  return out;
}

}  // namespace counterflow

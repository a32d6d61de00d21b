#include "report/run_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/format.h"
#include "report/json/writer.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

void append(std::string& out, const RunStatistics::OfRank& figures) {
  json::Object entry(out);
  entry.add("rank", std::int64_t{figures.rank});
  entry.add("kind", figures.kind);
  entry.add("count", std::int64_t{figures.count});
  entry.add("predicted_ns", figures.predicted.count());
  entry.add("mean_ns", figures.mean.count());
  entry.add("median_ns", figures.median.count());
  entry.add("spread_ns", figures.spread.count());
  entry.add("step_spread_ns", figures.step_spread.count());
  entry.close();
}

void append(std::string& out, const Straggler& straggler) {
  json::Object entry(out);
  entry.add("rank", std::int64_t{straggler.rank});
  entry.add("kind", straggler.kind);
  if (straggler.op) entry.add("op", to_string(*straggler.op));
  entry.add("factor", straggler.factor);
  entry.add("than", std::string(straggler.op          ? "its kind"
                                : straggler.has_peers ? "peers"
                                                      : "prediction"));
  entry.add("since_step", std::int64_t{straggler.since});
  entry.add("cost_ns", straggler.cost.count());
  entry.close();
}

void append(std::string& out, const Drift& drift) {
  json::Object entry(out);
  entry.member("sure") += drift.is_sure ? "true" : "false";
  entry.add("first_ns", drift.first.count());
  entry.add("last_ns", drift.last.count());
  entry.add("change", drift.change);
  if (!drift.kind.empty()) {
    entry.add("kind", drift.kind);
    entry.add("of_kind_ns", drift.of_kind.count());
  }
  entry.close();
}

std::string text_of(const Straggler& straggler) {
  const std::string since =
      fmt::format("from step {} on, {} a step", straggler.since, readable_time(straggler.cost));
  if (straggler.op) {
    return fmt::format("rank {}: {} takes {:.2f} times what other {} take there, {}",
                       straggler.rank, to_string(*straggler.op), straggler.factor, straggler.kind,
                       since);
  }
  return fmt::format(
      "rank {}: {} takes {:.2f} times {}, {}", straggler.rank, straggler.kind, straggler.factor,
      straggler.has_peers ? "what it takes on other ranks" : "what is predicted", since);
}

std::string text_of(const Drift& drift, Time predicted) {
  if (!drift.is_sure) return {};
  std::string text =
      fmt::format("steps get {}: {} in the first half, {} in the second ({:+.1f} %), predicted {}",
                  drift.change > 0 ? "longer" : "shorter", readable_time(drift.first),
                  readable_time(drift.last), 100 * drift.change, readable_time(predicted));
  if (drift.kind.empty()) {
    return text + fmt::format("; no kind of op explains it: ranks wait {}",
                              drift.change > 0 ? "longer" : "less");
  }
  const Time size = std::max(drift.of_kind, -drift.of_kind);
  return text + fmt::format("; {} takes {} {} a rank", drift.kind, readable_time(size),
                            drift.of_kind > Time{0} ? "more" : "less");
}

}  // namespace

void append_json(std::string& out, const RunStatistics& statistics) {
  json::Object object(out);
  json::Array ranks(object.member("ranks"), ",\n  ");
  for (const auto& figures : statistics.ranks) append(ranks.element(), figures);
  ranks.close();
  json::Array stragglers(object.member("stragglers"), ",\n  ");
  for (const Straggler& each : statistics.stragglers) append(stragglers.element(), each);
  stragglers.close();
  if (statistics.drift) {
    append(object.member("drift"), *statistics.drift);
  }
  object.close();
}

std::string summary(const RunStatistics& statistics) {
  constexpr std::size_t kShown = 5;
  std::string out;
  const std::size_t count = statistics.stragglers.size();
  for (std::size_t k = 0; k < std::min(count, kShown); ++k) {
    out += "  " + text_of(statistics.stragglers[k]) + '\n';
  }
  if (count > kShown) {
    fmt::format_to(std::back_inserter(out), "  and {} more slow ops or ranks (--json)\n",
                   count - kShown);
  }
  constexpr int kFew = 4;  // fewer cannot tell one rank's luck from its pace
  if (count == 0 && statistics.steps < kFew) {
    out += "  too few steps to say whether a rank or an op is slower than its like\n";
  } else if (count == 0) {
    out += "  no rank and no op is slower than its like\n";
  }
  if (!statistics.drift) return out;
  const std::string drift = text_of(*statistics.drift, statistics.predicted_makespan);
  out += drift.empty() ? "  steps stay as long\n" : "  " + drift + '\n';
  return out;
}

}  // namespace counterflow

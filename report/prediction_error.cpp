#include "report/prediction_error.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <utility>

#include "report/format.h"
#include "report/json/writer.h"
#include "report/kind_names.h"
#include "report/report.h"

namespace counterflow {
namespace {

using Kind = std::pair<OpKind, OpKind>;

struct Sums {
  int count = 0;
  std::int64_t predicted = 0;
  std::int64_t measured = 0;
  std::int64_t largest = 0;
};

double relative(double measured, double predicted) {
  return predicted > 0 ? measured / predicted - 1 : 0;
}

void add(Sums& sums, std::int64_t predicted, std::int64_t measured) {
  ++sums.count;
  sums.predicted += predicted;
  sums.measured += measured;
  const std::int64_t difference = measured - predicted;
  if (std::abs(difference) > std::abs(sums.largest)) sums.largest = difference;
}

std::string signed_share(double share) {
  return fmt::format("{:+.2f} %", 100 * share);
}

}  // namespace

PredictionError prediction_error(const Program& program, const Timeline& predicted,
                                 const Timeline& measured) {
  std::map<Kind, Sums> kinds;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const auto& instructions = program.ranks[r].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& each = instructions[i];
      if (each.op.kind == OpKind::none) continue;
      add(kinds[{each.op.kind, each.paired.kind}],
          predicted.ranks[r].instructions[i].length().count(),
          measured.ranks[r].instructions[i].length().count());
    }
  }
  PredictionError result;
  result.predicted_makespan = measure(program, predicted).makespan;
  result.measured_makespan = measure(program, measured).makespan;
  result.makespan_error = relative(static_cast<double>(result.measured_makespan.count()),
                                   static_cast<double>(result.predicted_makespan.count()));
  for (const auto& [kind, sums] : kinds) {
    result.kinds.push_back(
        {.kind = kind_token(kind.first, kind.second),
         .count = sums.count,
         .predicted = Time{sums.predicted / sums.count},
         .measured = Time{sums.measured / sums.count},
         .error = relative(static_cast<double>(sums.measured), static_cast<double>(sums.predicted)),
         .largest_difference = Time{sums.largest}});
  }
  return result;
}

void append_json(std::string& out, const PredictionError& error) {
  json::Object object(out);
  json::Object makespan(object.member("makespan"));
  makespan.add("predicted_ns", error.predicted_makespan.count());
  makespan.add("measured_ns", error.measured_makespan.count());
  makespan.add("error", error.makespan_error);
  makespan.close();
  json::Array kinds(object.member("kinds"), ",\n  ");
  for (const PredictionError::OfKind& kind : error.kinds) {
    json::Object entry(kinds.element());
    entry.add("kind", kind.kind);
    entry.add("count", std::int64_t{kind.count});
    entry.add("predicted_ns", kind.predicted.count());
    entry.add("measured_ns", kind.measured.count());
    entry.add("error", kind.error);
    entry.add("largest_difference_ns", kind.largest_difference.count());
    entry.close();
  }
  kinds.close();
  object.close();
}

std::string summary(const PredictionError& error) {
  std::string out = fmt::format("\n  {:<10}{:>7}{:>14}{:>14}{:>13}{:>20}\n", "kind", "count",
                                "predicted", "measured", "error", "largest difference");
  const auto append = [&](std::string_view kind, std::string_view count, Time predicted,
                          Time measured, double share, std::string_view largest) {
    fmt::format_to(std::back_inserter(out), "  {:<10}{:>7}{:>14}{:>14}{:>13}{:>20}\n", kind, count,
                   readable_time(predicted), readable_time(measured),
                   predicted == Time{0} ? "-" : signed_share(share), largest);
  };
  append("makespan", "", error.predicted_makespan, error.measured_makespan, error.makespan_error,
         "");
  for (const PredictionError::OfKind& kind : error.kinds) {
    append(kind.kind, std::to_string(kind.count), kind.predicted, kind.measured, kind.error,
           readable_time(kind.largest_difference));
  }
  return out;
}

}  // namespace counterflow

#include "scheduler/search/decoder.h"

#include <utility>

#include "scheduler/search/reverse.h"

namespace counterflow {

namespace {

SearchModel model_for(const Problem& problem, bool for_span,
                      std::vector<std::vector<Microbatch>> sequence) {
  SearchModel model(problem, std::move(sequence));
  if (for_span) model.aim_at_span();
  return model;
}

}  // namespace

Decoder::Decoder(const Problem& problem, bool for_span,
                 std::vector<std::vector<Microbatch>> sequence)
    : forward_(model_for(problem, for_span, std::move(sequence))),
      backward_(forward_.reversed()),
      forwards_(forward_),
      backwards_(backward_),
      evaluator_(forward_) {}

std::int64_t Decoder::decode(const PriorityRule& rule, std::int64_t cutoff) {
  return decode(list_rule(rule.reversed ? backward_ : forward_, rule), rule.reversed, cutoff);
}

std::int64_t Decoder::decode(const ListRule& rule, bool backwards, std::int64_t cutoff) {
  if (!backwards) {
    const std::int64_t makespan = forwards_.run(rule, cutoff);
    if (makespan >= 0) orders_ = forwards_.orders();
    return makespan;
  }
  // Messages that queue do so in the other order backwards: only the evaluation tells.
  if (backwards_.run(rule, forward_.limited_links ? SearchModel::kUnlimited : cutoff) < 0) {
    return -1;
  }
  SearchModel::Orders orders = reversed(backward_, backwards_.orders());
  const std::int64_t makespan = evaluator_.evaluate(orders, cutoff);
  if (makespan >= 0) orders_ = std::move(orders);
  return makespan;
}

}  // namespace counterflow

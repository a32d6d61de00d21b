#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/search/list_scheduler.h"
#include "scheduler/search/model.h"

namespace counterflow {

// One way to set the keys of a list scheduler. Numbers are in eighths.
//
// `deadline`: microbatch j of a lane is due at j*T + stretch * head, T the load of the busiest rank
// for a microbatch: modulo scheduling without its rounding. A stretch above 1 spreads the wave, so
// that it fills the memory there is. W is due `weight_delay` * T after its I.
// `tail`: the same with the way to the end in place of the head.
// `gradient_first`, `weight_second`: I before F before W, or I before W before F; older
// microbatches first.
struct PriorityRule {
  enum class Style : std::uint8_t { deadline, tail, gradient_first, weight_second };
  Style style = Style::deadline;
  bool reversed = false;  // schedule the reversed problem and turn the order round
  int stretch = 8;
  int weight_delay = 8;
  int patience = 0;
  int cap = 0;    // 0: none; else as many of a stage in flight as live at once at this stretch
  int entry = 0;  // 0: any number; else at most so many microbatches of a direction under way
  int shift = 4;  // of the second direction against the first, in periods

  friend bool operator==(const PriorityRule&, const PriorityRule&) = default;
};

// The load of the busiest rank for one microbatch of each direction.
[[nodiscard]] std::int64_t period(const SearchModel& model);

// The rule in terms of the model, which must be reversed where the rule is.
[[nodiscard]] ListRule list_rule(const SearchModel& model, const PriorityRule& rule);

// Every rule worth trying, in an order that depends on the seed alone: the classes first, then the
// rest mixed so that any prefix covers the range.
[[nodiscard]] std::vector<PriorityRule> priority_grid(const SearchModel& model, std::uint64_t seed);

}  // namespace counterflow

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// May any stage choose what it keeps?
[[nodiscard]] bool has_choices(const Problem& problem);

// The problem with nothing to choose: every stage that could choose keeps everything.
[[nodiscard]] Problem with_all_kept(const Problem& problem);
// And with every stage that can choose keeping the least it can.
[[nodiscard]] Problem with_least_kept(const Problem& problem);

// A makespan that no order can beat, whatever the stages keep of what is offered: that of the
// problem with every stage keeping the least at no cost or, where the choices are few, the least of
// all choices that fit.
[[nodiscard]] LowerBound lower_bound_of_choices(const Problem& problem, BoundEffort effort);

// What every stage keeps between F and the backward, of the ways the problem offers it. [stage] 0:
// as the problem says where there is nothing to choose, else everything; k: the k-th way offered.
using Choice = std::vector<std::uint8_t>;

// So many choices are all looked at.
inline constexpr std::size_t kFewChoices = 16;

// How many ways a stage is offered beside keeping everything.
[[nodiscard]] std::size_t options_of(const Problem& problem, std::size_t stage);
[[nodiscard]] Problem chosen(const Problem& problem, const Choice& choice);
// Every stage keeping the least it can.
[[nodiscard]] Choice least_choice(const Problem& problem);
// Is there an order within the memory?
[[nodiscard]] bool fits(const Problem& problem);
// A problem of which any order under any choice, its moves left out, is an order that holds no more
// at any time and ends no later.
[[nodiscard]] Problem relaxed(const Problem& problem);
// The next choice in counting order; false after the last.
[[nodiscard]] bool next_choice(const Problem& problem, Choice& choice);
// How many choices there are, counted no further than `most` + 1.
[[nodiscard]] std::size_t count_choices(const Problem& problem, std::size_t most);

}  // namespace counterflow

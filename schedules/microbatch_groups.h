#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/family.h"
#include "schedules/turns.h"

// Interleaving: a rank with several stages (loop placement) takes microbatches in groups, and each
// group through one stage after the other.
namespace counterflow {

// The sizes of the groups. A group size asked for gives groups of it and a rest; else max(1, m div
// p) groups as equal as can be, larger first: never fewer than p in a group unless m < p.
[[nodiscard]] std::vector<int> microbatch_groups(const Shape& shape);

// Why the group size asked for is refused: a group of fewer than p microbatches that does not hold
// them all makes ranks wait for each other, for ever at some sizes.
[[nodiscard]] std::optional<std::string> refuse_group_size(std::string_view family,
                                                           const Shape& shape);

// The turns of a rank: for each group, each of its stages in ascending order, each microbatch of
// the group; backwards the same with the stages descending. `warm_up` is capped at all forwards.
// O(m v).
[[nodiscard]] Turns interleaved_turns(const Shape& shape, Rank rank, int warm_up);

// Forwards by which interleaving runs ahead of plain 1F1B: (v-1) times the first group.
[[nodiscard]] int interleaving_lead(const Shape& shape);

}  // namespace counterflow

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "schedules/family.h"

namespace counterflow {

// Every family, in the order of the documentation.
[[nodiscard]] std::span<const Family> families();

// By name or alias, whatever its case; nullptr if there is none.
[[nodiscard]] const Family* find_family(std::string_view name);
// The known name or alias nearest to a misspelt one, for "did you mean".
[[nodiscard]] std::string_view nearest_family(std::string_view name);

// Why the family cannot take this shape: chunks, group size or its own rule, naming the rule and
// the nearest legal values; empty if it can. What to ask before there is a placement.
[[nodiscard]] std::optional<std::string> refusal(const Family& family, const Shape& shape);

// The shape a problem asks of a family.
[[nodiscard]] Shape shape_of(const Problem& problem);

// The family's order for this problem; of several phases, one after the other, those that do not
// train go through the stages in a forward pass. It is generated, then adapted to what the problem
// needs (split or full backward where the family leaves the choice, no W on frozen stages, no I
// before the first trainable one). Throws InputError with the rule and the nearest legal values
// where the family cannot take the problem: shape, placement or split_backward.
[[nodiscard]] Schedule generate(const Family& family, const Problem& problem);

}  // namespace counterflow

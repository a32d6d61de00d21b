#pragma once

#include <cstdint>
#include <string_view>

#include "scheduler/ir/units.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// How much a bound may cost.
enum class BoundEffort : std::uint8_t {
  quick,  // closed forms; area and Jackson's bound up to a size that takes milliseconds
  full,   // area and Jackson's bound whatever the size (a second for a million ops), and windows
          // where the problem is small (up to a second)
};
inline constexpr std::size_t kQuickAreaOps = 400'000;
inline constexpr std::size_t kQuickJacksonOps = 20'000;
inline constexpr std::size_t kWindowOps = 1'600;

// A makespan that no order on this placement within these limits can beat, and which argument gave
// it: "closed", "area", "jackson" or "windows"; "exact" where a search proved it by branching.
struct LowerBound {
  Time value{0};
  std::string_view argument;
};

// A problem without OFFLOAD, RECOMPUTE and RELOAD, of which every order of this one is an order
// that ends no later and holds no more: what bounds it bounds this.
[[nodiscard]] Problem without_moves(const Problem& problem);

// The largest of the bounds that hold for the problem: all of them, but where fusing a pair saves
// time only the closed forms. Where split_backward is `full` the backward is one op, else it may be
// split. 0ns for a problem without work.
[[nodiscard]] LowerBound best_lower_bound(const Problem& problem,
                                          BoundEffort effort = BoundEffort::quick);
[[nodiscard]] inline Time lower_bound(const Problem& problem,
                                      BoundEffort effort = BoundEffort::quick) {
  return best_lower_bound(problem, effort).value;
}

// Can fusing F with a backward take less time than one after the other, anywhere? Then ops are not
// simply their durations. O(sum over ranks of stages on the rank squared).
[[nodiscard]] bool pairs_may_save(const Problem& problem);

}  // namespace counterflow

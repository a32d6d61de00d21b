#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/op.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"
#include "scheduler/problem/scenario.h"

namespace counterflow {

// Where a run that did not come to its end stands still.
struct Stoppage {
  // Why a rank did not come to its end: the causes come first.
  enum class Cause : std::uint8_t {
    failure,  // of the rank itself
    link,     // both ends of a message are there, and it stands still
    other,    // what it waits for has not come, for a cause elsewhere
  };
  // Of a rank the instruction whose message stands still, if there is one; else its first, in issue
  // order, that did not end.
  struct Blocked {
    Rank rank = 0;
    std::uint32_t index = 0;
    std::string what{};  // the instruction, as called() names it
    Time since{0};  // when it, and what it exchanges a message with, were there, or the rank failed
    Cause cause = Cause::other;
    bool sends = false;  // a message that stands still
    std::string reason;  // what it waits for
  };
  struct OfRank {
    std::size_t finished = 0;
    std::size_t instructions = 0;
  };
  Time last_progress{0};         // nothing ended later
  std::vector<OfRank> ranks;     // [rank]
  std::vector<Blocked> blocked;  // failed ranks first, then dead links from their
                                 // sending end, then by time; one a rank that did not end
};

// Reads it off the timeline of a run under this scenario. O(instructions).
[[nodiscard]] Stoppage explain_stop(const Program& program, const Timeline& timeline,
                                    const Scenario& scenario);

}  // namespace counterflow

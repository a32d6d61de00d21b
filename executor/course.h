#pragma once

#include <cstdint>

#include "scheduler/graph/prerequisites.h"

namespace counterflow::exec {

// How far a step on virtual streams is: what every instruction changes. A local variable of its
// loop; whoever is not inlined there takes and returns it, so that it has no address and stays in
// registers.

// Of a step whose order is sought: an instruction counts down those that wait for its begin and its
// end, and whoever reaches zero is ready; nobody is ever asked twice.
struct Seeking {
  using Index = Prerequisites::Index;
  static constexpr bool kFollows = false;
  static constexpr bool kTimesKnown = false;

  Index* ready = nullptr;            // behind the last of those that may begin
  std::uint32_t* pending = nullptr;  // [index] how many must yet begin or end before it
  std::int64_t events = 0;           // begins and ends so far

  // Whether one gets ready is hard to foretell, so nothing branches on it.
  void satisfy(Index waiting) {
    *ready = waiting;
    ready += static_cast<int>(--pending[waiting] == 0);
  }
};

// Of a step in the order of one before it: nobody need be asked. Where times are counts of events,
// they are known as well.
template <bool times_known>
struct Following {
  static constexpr bool kFollows = true;
  static constexpr bool kTimesKnown = times_known;

  std::int64_t events = 0;

  void satisfy(Prerequisites::Index) {}
};

}  // namespace counterflow::exec

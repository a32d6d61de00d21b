#pragma once

#include <algorithm>
#include <span>

#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"

namespace counterflow {

// Does a group of transfers let its stream go on as soon as it has begun? A send into a buffer and
// a posted receive do; a group with anything else in it holds the stream until it ends.
[[nodiscard]] inline bool releases_stream_at_begin(Semantics semantics,
                                                   std::span<const Transfer> group) {
  const auto all_are = [group](bool send) {
    return std::ranges::all_of(group, [send](const Transfer& t) { return t.is_send == send; });
  };
  switch (semantics) {
    case Semantics::buffered:
      return all_are(true);
    case Semantics::posted:
      return all_are(false);
    case Semantics::rendezvous:
      return false;
  }
  return false;
}

}  // namespace counterflow

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "executor/backend.h"
#include "scheduler/graph/matching.h"
#include "scheduler/graph/prerequisites.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// What a member of a collective has not received, and from whom: its share of the work, or, of an
// all-reduce, its part of the sum, which comes after all shares.
struct Lack {
  std::uint32_t rank = 0;
  bool is_sum = false;
};

// How far each instruction of a step has come, for whoever asks why it does not go on.
struct Progress {
  std::function<bool(Prerequisites::Index)> begun;
  std::function<bool(Prerequisites::Index)> ended;
  // Of a rank that is not there any more, what is known of it: "is gone: connection reset"; empty
  // for one that is there. May be empty itself.
  std::function<std::string(std::uint32_t rank)> gone{};
  // Of a collective that has begun, what its rank has not received; none if that is not known, as
  // where nothing is sent. May be empty itself.
  std::function<std::optional<Lack>(Prerequisites::Index)> lacks{};
};

// The first instruction, rank after rank in issue order, that has begun and cannot end, or else
// that cannot begin: what it is, what it waits for, what the other end is doing, and at which rank
// the chain of those that wait ends. A step that is stuck always has one. O(instructions), and as
// much again for each instruction of the chain.
[[nodiscard]] Failure why_stuck(const Program& program, const Matching& matching,
                                const Prerequisites& prerequisites, const Progress& progress,
                                int step);

// Where the chain of those that wait for each other, from one instruction on, ends.
struct ChainEnd {
  enum class Kind : std::uint8_t {
    busy,    // at a compute, or something else that is under way
    gone,    // at a rank that is not there
    lost,    // at a message whose two ends are both posted, or a member's part of a collective
    nobody,  // at something that nobody will do
    cycle,   // nowhere
  };
  Kind kind = Kind::busy;
  Prerequisites::Index last = 0;  // the last instruction that waits
  std::optional<Rank> culprit{};
};
[[nodiscard]] ChainEnd chain_end(const Program& program, const Matching& matching,
                                 const Prerequisites& prerequisites, const Progress& progress,
                                 Prerequisites::Index from);
// The failure that this is.
[[nodiscard]] Failure failure_at(const Program& program, const Matching& matching,
                                 const Prerequisites& prerequisites, const Progress& progress,
                                 const ChainEnd& end, int step);

// What a message means, in words.
[[nodiscard]] std::string describe(const Payload& payload);

}  // namespace counterflow::exec

#pragma once

#include <cstdint>
#include <vector>

#include "executor/exchange.h"
#include "scheduler/graph/prerequisites.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// An instruction as a machine in virtual time runs it: what never changes is looked up before the
// first step, and all that the common ones need stands in one cache line.
struct alignas(64) Node {
  enum class Shape : std::uint8_t {
    run,      // nobody waits for its begin
    message,  // a transfer of one message, at most one waits for its begin
    other,    // anything else, or more wait for its end than fit: only `ends_left` and `rank` count
  };
  static constexpr std::size_t kFollowers = 3;

  Shape shape = Shape::other;
  StreamId stream = 0;
  std::uint16_t rank = 0;
  std::uint32_t ends_left = 0;  // of a group that has begun: messages that have not ended
  Range body{};                 // of a run its accesses; of a message, first, the exchange's id
  std::uint32_t kernel = kNone;
  // Who is one nearer to its begin when this begins, and when it ends; what is left over names
  // nobody, who stands behind the last instruction.
  Prerequisites::Index after_begin = 0;
  Prerequisites::Index after_end[kFollowers] = {};
  Op op{};
  Op paired{};
};
static_assert(sizeof(Node) == 64);

// [index], and nobody. O(instructions).
[[nodiscard]] std::vector<Node> nodes_of(const Program& program, const Prerequisites& prerequisites,
                                         const Exchange& exchange);

}  // namespace counterflow::exec

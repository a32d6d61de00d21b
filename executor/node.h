#pragma once

#include <cstdint>
#include <vector>

#include "executor/exchange.h"
#include "scheduler/graph/prerequisites.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// An instruction as a machine in virtual time runs it: what never changes is looked up before the
// first step, and what the common ones need stands close together.
struct alignas(32) Node {
  enum class Shape : std::uint8_t {
    run,      // nobody waits for its begin
    message,  // a transfer of one message, at most one waits for its begin
    other,    // anything else, or more wait for its end than fit: only `rank` counts
  };

  Shape shape = Shape::other;
  StreamId stream = 0;
  std::uint16_t rank = 0;
  std::uint32_t kernel = kNone;
  Range body{};  // of a run its accesses; of a message, first, the exchange's id
  Op op{};
  Op paired{};
};
static_assert(sizeof(Node) == 32);

// Who is one nearer to its begin when an instruction of a common shape begins, and when it ends;
// what is left over names nobody, who stands behind the last instruction.
struct alignas(16) Followers {
  using Index = Prerequisites::Index;
  static constexpr std::size_t kMost = 3;

  Index after_begin = 0;
  Index after_end[kMost] = {};
};
static_assert(sizeof(Followers) == 16);

// [index]. O(instructions).
[[nodiscard]] std::vector<Node> nodes_of(const Program& program, const Prerequisites& prerequisites,
                                         const Exchange& exchange);
[[nodiscard]] std::vector<Followers> followers_of(const Prerequisites& prerequisites);

}  // namespace counterflow::exec

#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/schedule.h"

// What all families of the 1F1B kind share: a rank takes its forwards and its backwards each in a
// fixed sequence, starts with some warm-up forwards, then alternates, then drains.
namespace counterflow {

// A compute op of a stage copy.
[[nodiscard]] constexpr Op compute_op(OpKind kind, Stage stage, Microbatch microbatch,
                                      int replica = 0) {
  return {kind, static_cast<std::uint8_t>(replica), static_cast<std::uint16_t>(stage), microbatch};
}

// A stage of a rank and a microbatch: the rank's turn to compute one for the other.
struct Turn {
  Stage stage = 0;
  Microbatch microbatch = 0;
};

// The turns of one rank. Both sequences have the same length.
struct Turns {
  std::vector<Turn> forwards;
  std::vector<Turn> backwards;
  int warm_up = 0;  // forwards before the first backward's own
};

// Microbatches 0..m-1 of one stage, forwards and backwards alike.
[[nodiscard]] Turns single_stage_turns(Stage stage, int microbatches, int warm_up);

// Warm-up forwards; then F(w+k), B(k) while forwards last; then the remaining B. O(length).
[[nodiscard]] std::vector<Slot> alternate(const Turns& turns);
// The same with every F(w+k), B(k) fused into one pair.
[[nodiscard]] std::vector<Slot> alternate_fused(const Turns& turns);
// The same with B cut: I takes its place, and from the k-th I on, k = `delay`, each I is followed
// by the oldest W due; what is left of W comes last.
[[nodiscard]] std::vector<Slot> alternate_split(const Turns& turns, int delay);

}  // namespace counterflow

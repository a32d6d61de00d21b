#pragma once

#include <cstddef>
#include <span>

#include "executor/memory.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// What collectives do to the slots of their members. A slot holds the whole vector before and
// after. Of n members, by ascending rank, part k is the k-th n-th of it:
//   all_reduce       everyone's becomes the sum
//   reduce_scatter   part k of member k's becomes that part of the sum, the rest stays
//   all_gather       part k of everyone's becomes that of member k
//   all_to_all       part k of member j's becomes part j of member k's
//   broadcast        everyone's becomes that of the first
// What is summed is FP32, by ascending member: the bits do not depend on who does it, nor on how
// the vector is cut. Sizes of sums must be multiples of 4.

// On one buffer a member, all the same size.
void perform(CollectiveKind kind, std::span<const Buffer> buffers);

// Part k of n, cut between elements; of what is no row of them, between bytes.
[[nodiscard]] Buffer part(Buffer whole, std::size_t k, std::size_t n);

// Element by element, FP32; `other` is as large.
void add(Buffer sum, std::span<const std::byte> other);

}  // namespace counterflow::exec

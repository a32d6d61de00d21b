#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/ir/schedule.h"

// Building blocks on the V placement (arXiv 2405.15362): the slots of one microbatch, repeated
// every six slots, then squeezed at both ends.
namespace counterflow {

inline constexpr int kBlockPeriod = 6;

// The slots of microbatch 0 on one rank; [0] is stage r, [1] stage 2p-1-r. F, I and W take a slot
// each, an uncut B two; a rank uses each residue modulo six once.
struct BlockRank {
  std::array<int, 2> forward{};
  std::array<int, 2> backward{};  // I, or B
};

enum class BlockBackward : std::uint8_t { split, full };

// The order of `microbatches` repetitions. With a split backward each W takes the first residue
// free after its I, chunk 1 before chunk 0, and the end of the pipeline is scheduled anew; the
// forwards and what else can start early are moved up as far as the block's own peak memory allows.
// O(ops log ops).
[[nodiscard]] Schedule repeat_block(const std::vector<BlockRank>& block, BlockBackward backward,
                                    int microbatches);

}  // namespace counterflow

#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/schedule_file.h"

namespace counterflow {

// The letters that schedule files have for gradient work. What B means depends on its neighbours.
enum class BackwardLetter : std::uint8_t { b, bw, i, w };

// One use of such a letter in a file.
struct BackwardMention {
  std::uint64_t microbatch = 0;  // which one of which stage copy, as one number
  int row = 0;                   // the line, counted from 1
  int cell = 0;                  // counted from 1, empty ones included
  std::uint32_t action = 0;      // index in ScheduleFile::rows[row - 1]
  BackwardLetter letter = BackwardLetter::b;
  bool fused = false;  // the backward of a pair
};

[[nodiscard]] BackwardMention mention_of(const Op& op, BackwardLetter letter);

// Decides for every B of a file, read as a full backward, what it is: beside a W for the same
// microbatch of the same stage copy the input gradient, else the full backward. Throws InputError
// where a microbatch is written both ways: B and BW, BW and W, or B, I and W. O(n log n) in
// mentions.
void resolve_backward_letters(ScheduleFile& file, std::vector<BackwardMention> mentions);

}  // namespace counterflow

#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow {

// Which instruction of a rank makes the recording that a wait means. The rank's list must outlive
// it.
class Recordings {
 public:
  // O(instructions).
  explicit Recordings(const RankProgram& rank);

  // Index of the instruction; kNone if there is no such recording. O(log generations).
  [[nodiscard]] std::uint32_t recorder(EventWait wait) const;

 private:
  const RankProgram& rank_;
  std::vector<std::uint32_t> first_;      // [event] into recorders_
  std::vector<std::uint32_t> recorders_;  // instructions by event, then by generation
};

}  // namespace counterflow

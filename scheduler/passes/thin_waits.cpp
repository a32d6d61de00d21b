#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "scheduler/graph/happens_before.h"
#include "scheduler/graph/recordings.h"
#include "scheduler/passes/passes.h"

namespace counterflow {
namespace {

struct Wait {
  std::uint32_t recorder = kNone;
  std::uint32_t place = 0;  // among the waits of the instruction
};

class Thinner {
 public:
  explicit Thinner(RankProgram& rank) : rank_(rank), recordings_(rank), order_(rank) {}

  void thin() {
    std::vector<EventWait> kept;
    kept.reserve(rank_.waits.size());
    for (std::uint32_t i = 0; i < rank_.instructions.size(); ++i) {
      Instruction& instruction = rank_.instructions[i];
      const auto first = static_cast<std::uint32_t>(kept.size());
      choose(i);
      const auto waits = rank_.waits_of(instruction);
      for (std::size_t k = 0; k < waits.size(); ++k) {
        if (needed_[k]) kept.push_back(waits[k]);
      }
      instruction.waits = {first, static_cast<std::uint32_t>(kept.size()) - first};
    }
    kept.shrink_to_fit();
    rank_.waits = std::move(kept);
  }

 private:
  // Which waits of an instruction say something that the others do not.
  void choose(std::uint32_t i) {
    waits_.clear();
    for (const EventWait& wait : rank_.waits_of(rank_.instructions[i])) {
      waits_.push_back({recordings_.recorder(wait), static_cast<std::uint32_t>(waits_.size())});
    }
    needed_.assign(waits_.size(), true);
    // The latest recorder knows most: first come the waits that may imply the others.
    std::ranges::sort(waits_, std::greater(), &Wait::recorder);
    order_.begin(i);
    for (const Wait& wait : waits_) {
      // A wait for what comes later, or never, is a fault: verify() must still see it.
      if (wait.recorder >= i) continue;
      if (order_.follows(wait.recorder)) {
        needed_[wait.place] = false;
      } else {
        order_.learn(wait.recorder);
      }
    }
    order_.finish();
  }

  RankProgram& rank_;
  const Recordings recordings_;
  HappensBefore order_;
  std::vector<Wait> waits_;   // of the instruction at hand, the latest recorder first
  std::vector<bool> needed_;  // [place]
};

}  // namespace

Program thin_waits(const Problem&, Program program) {
  for (RankProgram& rank : program.ranks) Thinner(rank).thin();
  return program;
}

}  // namespace counterflow

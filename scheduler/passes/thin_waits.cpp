#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/graph/happens_before.h"
#include "scheduler/graph/recordings.h"
#include "scheduler/passes/passes.h"

namespace counterflow {
namespace {

struct Wait {
  std::uint32_t recorder = kNone;
  EventWait event;
};

void thin(RankProgram& rank) {
  const Recordings recordings(rank);
  HappensBefore order(rank);
  std::vector<EventWait> kept;
  kept.reserve(rank.waits.size());
  std::vector<Wait> waits;
  for (std::uint32_t i = 0; i < rank.instructions.size(); ++i) {
    Instruction& instruction = rank.instructions[i];
    waits.clear();
    for (const EventWait& wait : rank.waits_of(instruction)) {
      waits.push_back({recordings.recorder(wait), wait});
    }
    // The latest recorder knows most: first come the waits that may imply the others.
    std::ranges::sort(waits, std::greater(), &Wait::recorder);
    const auto first = static_cast<std::uint32_t>(kept.size());
    order.begin(i);
    for (const Wait& wait : waits) {
      // A wait for what comes later, or never, is a fault: verify() must still see it.
      const bool sound = wait.recorder < i;
      if (sound && order.follows(wait.recorder)) continue;
      kept.push_back(wait.event);
      if (sound) order.learn(wait.recorder);
    }
    order.finish();
    std::reverse(kept.begin() + first, kept.end());
    instruction.waits = {first, static_cast<std::uint32_t>(kept.size()) - first};
  }
  rank.waits = std::move(kept);
}

}  // namespace

Program thin_waits(const Problem&, Program program) {
  for (RankProgram& rank : program.ranks) thin(rank);
  return program;
}

}  // namespace counterflow

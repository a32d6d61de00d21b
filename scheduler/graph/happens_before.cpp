#include "scheduler/graph/happens_before.h"

#include <algorithm>

namespace counterflow {

HappensBefore::HappensBefore(const RankProgram& rank)
    : rank_(rank),
      streams_(rank.streams.size()),
      on_stream_(streams_ * streams_, 0),
      clock_of_(rank.instructions.size(), kNone),
      run_number_(rank.instructions.size(), 0),
      first_learned_(rank.instructions.size(), kNone),
      known_(streams_, 0) {}

void HappensBefore::begin(std::uint32_t instruction) {
  at_ = instruction;
  transfers_.clear();
  if (is_run(at_)) {
    std::ranges::copy(clock(rank_.instructions[at_].stream), known_.begin());
  } else {
    std::ranges::fill(known_, 0U);
  }
}

void HappensBefore::begin(std::uint32_t instruction, const Recordings& recordings) {
  begin(instruction);
  for (const EventWait& wait : rank_.waits_of(rank_.instructions[instruction])) {
    const std::uint32_t recorder = recordings.recorder(wait);
    if (recorder < instruction) learn(recorder);
  }
}

void HappensBefore::learn(std::uint32_t recorder) {
  if (!is_run(recorder)) transfers_.push_back(recorder);
  if (clock_of_[recorder] == kNone) return;
  const auto other = std::span(recorded_).subspan(clock_of_[recorder], streams_);
  for (std::size_t s = 0; s < streams_; ++s) known_[s] = std::max(known_[s], other[s]);
}

bool HappensBefore::follows(std::uint32_t earlier) const {
  if (is_run(earlier)) {
    return run_number_[earlier] > 0 &&
           known_[rank_.instructions[earlier].stream] >= run_number_[earlier];
  }
  if (std::ranges::find(transfers_, earlier) != transfers_.end()) return true;
  for (std::uint32_t k = first_learned_[earlier]; k != kNone; k = learned_[k].next) {
    if (known_[learned_[k].stream] >= learned_[k].run) return true;
  }
  return false;
}

void HappensBefore::finish() {
  const Instruction& instruction = rank_.instructions[at_];
  if (is_run(at_)) {
    known_[instruction.stream] += 1;
    run_number_[at_] = known_[instruction.stream];
    for (const std::uint32_t transfer : transfers_) {
      learned_.push_back({run_number_[at_], first_learned_[transfer], instruction.stream});
      first_learned_[transfer] = static_cast<std::uint32_t>(learned_.size() - 1);
    }
    std::ranges::copy(known_, clock(instruction.stream).begin());
  }
  if (instruction.records != kNone) {
    clock_of_[at_] = static_cast<std::uint32_t>(recorded_.size());
    recorded_.insert(recorded_.end(), known_.begin(), known_.end());
  }
}

}  // namespace counterflow

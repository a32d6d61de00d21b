#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/graph/recordings.h"
#include "scheduler/ir/program.h"

namespace counterflow {

// What an instruction of a rank can be sure has ended when it begins, going through the rank's list
// in issue order with a vector clock for each stream. Only two things count: runs of one stream
// follow each other, and whoever waits for an event follows its recorder and all that one knew. The
// order of transfers on a stream does not: some execution models let a transfer go ahead of what
// stands before it, or go on before it has ended. Orders that exist only by way of another rank do
// not count either.
class HappensBefore {
 public:
  // The list must outlive it. O(instructions).
  explicit HappensBefore(const RankProgram& rank);

  // Begins with the next instruction of the list: only its stream is known so far.
  void begin(std::uint32_t instruction);
  // The same, and all that its waits say of earlier instructions. O(streams * waits).
  void begin(std::uint32_t instruction, const Recordings& recordings);
  // It waits for that recorder, an earlier instruction. O(streams).
  void learn(std::uint32_t recorder);
  // Has that earlier instruction surely ended when this one begins? O(1), for transfers O(those who
  // waited for it).
  [[nodiscard]] bool follows(std::uint32_t earlier) const;
  // Done with the instruction. O(streams).
  void finish();

 private:
  // A run from which on the end of some transfer is known.
  struct Learned {
    std::uint32_t run = 0;  // number of the run on its stream, from 1
    std::uint32_t next = kNone;
    StreamId stream = 0;
  };
  [[nodiscard]] bool is_run(std::uint32_t i) const {
    return rank_.instructions[i].kind == InstructionKind::run;
  }
  [[nodiscard]] std::span<std::uint32_t> clock(StreamId stream) {
    return std::span(on_stream_).subspan(stream * streams_, streams_);
  }

  const RankProgram& rank_;
  std::size_t streams_;
  std::vector<std::uint32_t> on_stream_;   // [stream][stream] runs that have ended, after the last
  std::vector<std::uint32_t> recorded_;    // clocks of the recorders, one after the other
  std::vector<std::uint32_t> clock_of_;    // [instruction] its place in recorded_; kNone
  std::vector<std::uint32_t> run_number_;  // [instruction] among the runs of its stream; 0: no run
  std::vector<std::uint32_t> first_learned_;  // [instruction] of a transfer, into learned_
  std::vector<Learned> learned_;
  // Of the instruction at hand.
  std::uint32_t at_ = 0;
  std::vector<std::uint32_t> known_;      // [stream]
  std::vector<std::uint32_t> transfers_;  // those it waits for itself
};

}  // namespace counterflow

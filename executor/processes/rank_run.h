#pragma once

#include <chrono>
#include <memory>

#include "executor/backend.h"
#include "executor/processes/mesh.h"

namespace counterflow::exec {

struct ProcessSettings {
  RunSettings run;
  // No instruction may take longer than this, or four times as long as predicted; nor may a rank be
  // silent for longer, or for a second.
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
  // How long a run that is stopped waits for computes under way before it leaves them behind.
  std::chrono::nanoseconds grace = std::chrono::milliseconds(300);
};

struct RankResult {
  // The steps at rank 0, for all ranks; at the others none. How far it was of this rank alone.
  RunResult run;
  // A compute did not come back: the process must end without unwinding.
  bool abandoned = false;
};

// One rank's part of a run of several processes, one a rank. The ranks agree on the program and on
// the time, run the steps together, and rank 0 gathers what they measured. When something goes
// wrong anywhere every rank stops, within twice the patience and seven seconds, each with the
// failure as it knows it.
class RankRun {
 public:
  // Program, compute and mesh must outlive it.
  RankRun(const Program& program, Compute& compute, const ProcessSettings& settings, Mesh& mesh);
  ~RankRun();
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  [[nodiscard]] RankResult run();

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace counterflow::exec

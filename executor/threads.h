#pragma once

#include <chrono>

#include "executor/backend.h"

namespace counterflow::exec {

// Every stream of every rank a thread of this process: instructions of a stream are issued in order
// by its thread, streams run at the same time, messages are copied from slot to slot by whoever
// comes second. If nothing begins or ends for as long as `patience`, the run stops and says which
// instruction could not go on; a compute that takes longer than that by itself needs more of it.
class Threads final : public Backend {
 public:
  explicit Threads(std::chrono::nanoseconds patience = std::chrono::seconds(10))
      : patience_(patience) {}
  [[nodiscard]] RunResult run(const Program& program, Compute& compute,
                              const RunSettings& settings) override;

 private:
  std::chrono::nanoseconds patience_;
};

}  // namespace counterflow::exec

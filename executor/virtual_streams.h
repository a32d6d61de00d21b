#pragma once

#include "executor/backend.h"

namespace counterflow::exec {

// All ranks and streams on the calling thread: whatever may begin next under the rules of the
// execution model, one of it, drawn with the seed, does. The same seed gives the same interleaving
// on every machine. Messages are copied when both ends are there (buffered: into a buffer of their
// own); payloads, sizes and slot versions are compared as they meet. If nothing can begin and
// something is left, that is the failure.
//
// Times are real nanoseconds if `clock`, else each begin and end is one more than the last.
class VirtualStreams final : public Backend {
 public:
  explicit VirtualStreams(bool clock = false) : clock_(clock) {}
  [[nodiscard]] RunResult run(const Program& program, Compute& compute,
                              const RunSettings& settings) override;

 private:
  bool clock_;
};

}  // namespace counterflow::exec

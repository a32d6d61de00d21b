#include "executor/threads.h"

#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "executor/interpreter.h"
#include "executor/local_transport.h"
#include "executor/progress.h"
#include "scheduler/graph/matching.h"
#include "scheduler/graph/prerequisites.h"

namespace counterflow::exec {
namespace {

// Stops a run in which nothing ends any more.
class PatienceWatch final : public Watch {
 public:
  explicit PatienceWatch(std::chrono::nanoseconds patience) : patience_(patience) {}

  void begin_step() {
    last_left_ = 0;
    since_ = Interpreter::Clock::now();
  }

  std::optional<Failure> look(Interpreter& run) override {
    const auto now = Interpreter::Clock::now();
    if (run.left() != last_left_) {
      last_left_ = run.left();
      since_ = now;
    }
    if (now - since_ < patience_) return std::nullopt;
    const Interpreter::Parts& parts = run.parts();
    return why_stuck(parts.program, parts.matching, parts.prerequisites,
                     {.begun = [&](Interpreter::Index index) { return run.begun(index); },
                      .ended = [&](Interpreter::Index index) { return run.ended(index); }},
                     run.step());
  }

 private:
  std::chrono::nanoseconds patience_;
  std::size_t last_left_ = 0;
  Interpreter::Clock::time_point since_;
};

}  // namespace

RunResult Threads::run(const Program& program, Compute& compute, const RunSettings& settings) {
  const Matching matching(program);
  const Prerequisites prerequisites(program, settings.execution);
  std::vector<RankMemory> memories;
  for (const RankProgram& rank : program.ranks) memories.emplace_back(rank);
  LocalTransport transport(program, matching, settings.execution.semantics, memories);
  std::vector<std::uint32_t> ranks(program.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0U);
  Interpreter interpreter({.program = program,
                           .matching = matching,
                           .prerequisites = prerequisites,
                           .compute = compute,
                           .transport = transport,
                           .memories = memories},
                          ranks);
  PatienceWatch watch(patience_);
  RunResult result;
  for (int step = 0; step < settings.steps && !result.failure; ++step) {
    watch.begin_step();
    // Threads of this process cannot be left behind: a compute that never returns is waited for.
    constexpr auto kForEver = std::chrono::hours(24 * 365);
    result.failure = interpreter.run_step(step, Interpreter::Clock::now(), watch, kForEver);
    if (result.failure) {
      for (const std::uint32_t rank : ranks) {
        result.stopped.emplace_back(interpreter.progress(rank));
      }
      break;
    }
    settle(settings, {std::move(interpreter.timelines())}, result);
    if (settings.step_done) settings.step_done(step + 1);
  }
  return result;
}

}  // namespace counterflow::exec

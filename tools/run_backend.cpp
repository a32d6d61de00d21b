#include "tools/run_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "executor/threads.h"
#include "executor/timed_compute.h"
#include "executor/virtual_streams.h"
#include "scheduler/error.h"
#include "tools/flight_files.h"
#ifdef COUNTERFLOW_HAS_GLOO
#include "executor/gloo/gloo.h"
#endif

namespace counterflow {
namespace {

// For what is run for its messages and buffers alone.
class NoCompute final : public exec::Compute {
 public:
  void run(const exec::ComputeCall&) override {}
};

exec::RunSettings settings_of(const RunOptions& options, const RunInput& input, RunSteps& steps) {
  exec::RunSettings settings{.steps = options.steps / input.consecutive,
                             .seed = options.seed,
                             .execution = input.execution};
  settings.measured = [&](Timeline step) { steps.add(std::move(step)); };
  if (isatty(STDERR_FILENO) == 1 && !options.quiet && !options.json) {
    settings.step_done = [steps = settings.steps](int done) {
      fmt::print(stderr, "\r\033[Krunning: step {} of {}{}", done, steps,
                 done == steps ? "\r\033[K" : "");
      std::fflush(stderr);
    };
  }
  return settings;
}

exec::RunResult on_virtual_streams(const RunOptions& options, const RunInput& input,
                                   RunSteps& steps) {
  exec::VirtualStreams backend(true);
  // One thread runs one op after the other: only the ops' own times can be compared.
  if (options.compare) {
    exec::TimedCompute compute;
    return backend.run(input.program, compute, settings_of(options, input, steps));
  }
  NoCompute compute;
  return backend.run(input.program, compute, settings_of(options, input, steps));
}

#ifdef COUNTERFLOW_HAS_GLOO
exec::RunResult on_gloo(const RunOptions& options, const RunInput& input, RunSteps& steps) {
  exec::GlooSettings settings{.process = {.run = settings_of(options, input, steps),
                                          .patience = patience_of(options, input.program)},
                              .faults = {}};
  if (!options.patience.empty()) {
    settings.meeting = std::chrono::ceil<std::chrono::milliseconds>(settings.process.patience);
  } else {
    settings.meeting = std::max(
        settings.meeting, std::chrono::ceil<std::chrono::milliseconds>(settings.process.patience));
  }
  if (!options.directory.empty()) {
    settings.abandoned = [&](const exec::RunResult& result) {
      write_flight_records(options.directory, input.program, *result.failure, result.stopped);
    };
  }
  for (const std::string& text : options.faults) {
    const exec::Fault fault = exec::parse_fault(text);
    if (static_cast<std::size_t>(fault.rank) >= input.program.ranks.size()) {
      throw InputError(
          fmt::format("--fault {}: there are ranks 0 to {}", text, input.program.ranks.size() - 1));
    }
    settings.faults.push_back(fault);
  }
  exec::TimedCompute compute;
  exec::RunResult result = exec::run_over_gloo(input.program, compute, settings);
  for (Timeline& step : result.steps) steps.add(std::move(step));
  result.steps.clear();
  return result;
}
#else
exec::RunResult on_gloo(const RunOptions&, const RunInput&, RunSteps&) {
  return {};  // check_backend() has refused it
}
#endif

}  // namespace

void check_backend([[maybe_unused]] const RunOptions& options) {
#ifndef COUNTERFLOW_HAS_GLOO
  if (options.backend == "gloo") {
    throw EnvironmentError(
        "--backend gloo: this counterflow was built without gloo; apt-get install libgloo-dev and "
        "build it again, or take --backend threads");
  }
#endif
}

exec::RunResult execute(const RunOptions& options, const RunInput& input, RunSteps& steps) {
  if (options.backend == "virtual") return on_virtual_streams(options, input, steps);
  if (options.backend == "gloo") return on_gloo(options, input, steps);
  exec::Threads backend(patience_of(options, input.program));
  exec::TimedCompute compute;
  return backend.run(input.program, compute, settings_of(options, input, steps));
}

std::optional<Rank> rank_of_launcher([[maybe_unused]] const RunOptions& options) {
#ifdef COUNTERFLOW_HAS_GLOO
  if (options.backend == "gloo") {
    if (const auto place = exec::launched_rank()) return place->rank;
  }
#endif
  return std::nullopt;
}

bool tells_result(const RunOptions& options) {
  return rank_of_launcher(options).value_or(0) == 0;
}

}  // namespace counterflow

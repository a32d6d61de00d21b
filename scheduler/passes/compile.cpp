#include "scheduler/passes/compile.h"

#include <array>
#include <chrono>
#include <utility>

#include "scheduler/passes/passes.h"

namespace counterflow {
namespace {

constexpr std::array kPasses = {
    Pass{"insert_transfers", insert_transfers},
    Pass{"assign_communicators", assign_communicators},
    Pass{"assign_streams", assign_streams},
    Pass{"insert_events", insert_events},
    Pass{"assign_buffers", assign_buffers},
    Pass{"compress_messages", compress_messages},
    Pass{"insert_optimizer", insert_optimizer},
    Pass{"insert_sharding", insert_sharding},
    Pass{"thin_waits", thin_waits},
};

// A file's transfers stay where they are: on the rank's one stream, and on one channel to each
// peer.
constexpr std::array kImportPasses = {
    Pass{"assign_communicators", assign_one_communicator},
    Pass{"insert_events", insert_events},
    Pass{"assign_buffers", assign_own_buffers},
    Pass{"compress_messages", compress_messages},
    Pass{"thin_waits", thin_waits},
};

// Runs `make`, reports what it made and how long it took.
template <typename Make>
Program observed(std::string_view pass, const PassObserver& observer, Make make) {
  const auto start = std::chrono::steady_clock::now();
  Program program = make();
  if (observer) {
    observer(pass, program,
             std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - start));
  }
  return program;
}

Program run_passes(std::span<const Pass> passes, const Problem& problem, Program program,
                   const PassObserver& observer) {
  for (const Pass& pass : passes) {
    program = observed(pass.name, observer, [&] { return pass.run(problem, std::move(program)); });
  }
  return program;
}

}  // namespace

std::span<const Pass> passes() {
  return kPasses;
}

Program compile(const Problem& problem, const Schedule& schedule, const PassObserver& observer) {
  Program program =
      observed("lower_compute", observer, [&] { return lower_compute(problem, schedule); });
  return run_passes(kPasses, problem, std::move(program), observer);
}

Program import(const Problem& problem, const ScheduleFile& file, const PassObserver& observer) {
  Program program = observed("lower_file", observer, [&] { return lower_file(problem, file); });
  return run_passes(kImportPasses, problem, std::move(program), observer);
}

}  // namespace counterflow

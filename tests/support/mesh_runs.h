#pragma once

#include <functional>
#include <future>
#include <vector>

#include "executor/processes/faults.h"
#include "executor/processes/rank_run.h"
#include "tests/support/local_mesh.h"

namespace counterflow::testing {

// Every rank of a program as a thread of its own, over a mesh in this process, with what goes
// wrong; each with the compute that is given for it. [rank]
[[nodiscard]] inline std::vector<exec::RankResult> run_all(
    const Program& program, const std::function<exec::Compute&(int)>& compute,
    const exec::ProcessSettings& settings, const std::vector<exec::Fault>& faults = {}) {
  LocalMeshes meshes(static_cast<int>(program.ranks.size()));
  std::vector<std::future<exec::RankResult>> runs;
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    runs.push_back(std::async(std::launch::async, [&, rank] {
      exec::FaultyMesh mesh(meshes.of(rank), faults);
      exec::RankRun run(program, compute(rank), settings, mesh);
      return run.run();
    }));
  }
  std::vector<exec::RankResult> results;
  for (auto& run : runs) results.push_back(run.get());
  return results;
}

// The same with one compute for all.
[[nodiscard]] inline std::vector<exec::RankResult> run_all(
    const Program& program, exec::Compute& compute, const exec::ProcessSettings& settings,
    const std::vector<exec::Fault>& faults = {}) {
  return run_all(program, [&](int) -> exec::Compute& { return compute; }, settings, faults);
}

}  // namespace counterflow::testing

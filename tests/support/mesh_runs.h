#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <utility>
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

// Ways to spoil a message, and words by which each is told.
inline const std::vector<std::pair<exec::FaultKind, const char*>> kSpoiled = {
    {exec::FaultKind::drop, "does not arrive"},
    {exec::FaultKind::duplicate, "for the second time"},
    {exec::FaultKind::reorder, ""},
    {exec::FaultKind::corrupt, "other bytes"},
    {exec::FaultKind::size, "B of"},
};

// Every rank stops before a step has ended, and names who spoiled a message, in these words.
inline void expect_named(const Program& program, exec::Compute& compute, const exec::Fault& fault,
                         const std::string& words) {
  // Only what does not come has to be waited for.
  const std::chrono::seconds patience(fault.kind == exec::FaultKind::drop ? 2 : 60);
  const auto results =
      run_all(program, compute, {.run = {.steps = 2}, .patience = patience}, {fault});
  for (const exec::RankResult& result : results) {
    ASSERT_TRUE(result.run.failure);
    EXPECT_EQ(result.run.failure->culprit, fault.rank) << result.run.failure->reason;
    EXPECT_NE(result.run.failure->reason.find(words), std::string::npos)
        << result.run.failure->reason;
    EXPECT_TRUE(result.run.steps.empty());
  }
}

}  // namespace counterflow::testing

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/support/mesh_runs.h"
#include "tests/support/trained_apart.h"

// The reference model trained by ranks that share nothing but a mesh.
namespace counterflow {
namespace {

using testing::TrainedApart;

TEST(Processes, TrainLikeOneProcess) {
  int n = 0;
  for (const TrainedApart::Sample& sample : TrainedApart::covering_samples()) {
    SCOPED_TRACE(sample.family + " p=" + std::to_string(sample.ranks) +
                 (sample.has_optimizer ? " with an optimizer" : ""));
    const TrainedApart trained(sample);
    std::deque<reference::ModelCompute> computes;
    for (int rank = 0; rank < trained.ranks(); ++rank) computes.push_back(trained.compute());
    const auto results = testing::run_all(
        trained.program(),
        [&](int rank) -> exec::Compute& { return computes[static_cast<std::size_t>(rank)]; },
        {.run = {.steps = trained.runs(),
                 .execution = n++ % 2 == 0 ? ExecutionModel::nccl() : ExecutionModel::gloo()}});
    std::vector<std::vector<reference::CopyResult>> of_rank;
    for (Rank rank = 0; rank < trained.ranks(); ++rank) {
      const auto& result = results[static_cast<std::size_t>(rank)];
      ASSERT_FALSE(result.run.failure) << result.run.failure->reason;
      auto& mine = of_rank.emplace_back();
      for (const Chunk& chunk : trained.chunks_of(rank)) {
        mine.push_back(computes[static_cast<std::size_t>(rank)].result_of(chunk));
      }
    }
    trained.expect_same_bits(of_rank);
  }
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "executor/gloo/gloo.h"
#include "executor/processes/wire.h"
#include "tests/support/trained_apart.h"

// The reference model trained by processes of their own, one a rank, over gloo.
namespace counterflow {
namespace {

using reference::CopyResult;
using testing::TrainedApart;

std::vector<std::byte> to_bytes(const std::vector<CopyResult>& copies) {
  exec::ByteWriter out;
  for (const CopyResult& copy : copies) {
    out.put_list(std::span(copy.losses)).put_list(std::span(copy.gradient));
    out.put_list(std::span(copy.parameters));
  }
  return out.take();
}

std::vector<CopyResult> copies_from_bytes(std::span<const std::byte> bytes, std::size_t count) {
  exec::ByteReader in(bytes);
  std::vector<CopyResult> copies;
  for (std::size_t k = 0; k < count; ++k) {
    CopyResult& copy = copies.emplace_back();
    copy.losses = in.get_list<float>();
    copy.gradient = in.get_list<float>();
    copy.parameters = in.get_list<float>();
  }
  EXPECT_TRUE(in.good());
  return copies;
}

// Leaves in a folder what its rank comes to: the process ends with the run.
class Reporting final : public exec::Compute {
 public:
  Reporting(const TrainedApart& trained, std::filesystem::path folder)
      : trained_(trained), folder_(std::move(folder)), inner_(trained.compute()) {}

  void run(const exec::ComputeCall& call) override { inner_.run(call); }
  void begin_step(Rank rank, int step) override { inner_.begin_step(rank, step); }
  void end_step(Rank rank, int step) override {
    if (step + 1 < trained_.runs()) return;
    std::vector<CopyResult> copies;
    for (const Chunk& chunk : trained_.chunks_of(rank)) copies.push_back(inner_.result_of(chunk));
    const std::vector<std::byte> bytes = to_bytes(copies);
    std::ofstream(folder_ / std::to_string(rank), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  const TrainedApart& trained_;
  std::filesystem::path folder_;
  reference::ModelCompute inner_;
};

class Gloo : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "gloo_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::vector<CopyResult> left_by(Rank rank, std::size_t count) const {
    std::ifstream file(folder_ / std::to_string(rank), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    std::filesystem::remove(folder_ / std::to_string(rank));
    return copies_from_bytes(std::as_bytes(std::span(text)), count);
  }
  std::filesystem::path folder_;
};

TEST_F(Gloo, TrainsLikeOneProcess) {
  int n = 0;
  for (const TrainedApart::Sample& sample : TrainedApart::covering_samples()) {
    SCOPED_TRACE(sample.family + " p=" + std::to_string(sample.ranks) +
                 (sample.has_optimizer ? " with an optimizer" : ""));
    const TrainedApart trained(sample);
    Reporting compute(trained, folder_);
    exec::GlooSettings settings;
    settings.process.run.steps = trained.runs();
    settings.process.run.execution = n++ % 2 == 0 ? ExecutionModel::nccl() : ExecutionModel::gloo();
    const exec::RunResult run = exec::run_over_gloo(trained.program(), compute, settings);
    ASSERT_FALSE(run.failure) << run.failure->reason;
    std::vector<std::vector<CopyResult>> of_rank;
    for (Rank rank = 0; rank < trained.ranks(); ++rank) {
      of_rank.push_back(left_by(rank, trained.chunks_of(rank).size()));
    }
    trained.expect_same_bits(of_rank);
  }
}

}  // namespace
}  // namespace counterflow

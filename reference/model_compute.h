#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "executor/compute.h"
#include "reference/model.h"
#include "reference/ordered_sum.h"
#include "reference/poison.h"
#include "reference/shards.h"
#include "reference/single_process.h"
#include "reference/skipped_step.h"
#include "reference/training.h"
#include "scheduler/graph/gradient_sums.h"

namespace counterflow::reference {

// What one copy of a stage comes to in a step. Of what is sharded it has its own elements alone.
struct CopyResult {
  std::vector<float> losses;    // [microbatch]
  std::vector<float> gradient;  // its own; where there is an optimizer, that over all copies
  std::vector<float> parameters;
};
// Of all copies, [replica * stages + stage]. Throws std::logic_error if copies of a stage ended
// with different gradients over all of them.
[[nodiscard]] StepResult<float> combine(const Problem& problem, std::span<const CopyResult> copies);
// The parameters of the model, of what is sharded from all copies, else those of the first.
[[nodiscard]] Parameters<float> combine_parameters(const Problem& problem,
                                                   std::span<const CopyResult> copies);

// The model as what a Program's runs call: every rank computes its copies of stages in the slots
// the program gives it. A fused pair is its forward, then its backward. The program's slots must be
// as large as with_sizes_of() asks for. Model and problem must outlive it.
class ModelCompute final : public exec::Compute {
 public:
  // Where the problem has an optimizer, its steps are those of `sgd`. `poison` may strike an op.
  // The problem is of one step, the program of so many `consecutive` ones (in_steps): a run of it
  // is all of those.
  ModelCompute(const Model<float>& model, const Problem& problem, const Sgd& sgd = {},
               const Poison& poison = {}, int consecutive = 1);

  void run(const exec::ComputeCall& call) override;
  void begin_step(Rank rank, int step) override;

  // Of the step that ran last; throws std::logic_error if a gradient is not complete, or if copies
  // of a stage ended with different ones.
  [[nodiscard]] StepResult<float> result() const;
  // One copy's part in that, where the others are computed elsewhere.
  [[nodiscard]] CopyResult result_of(const Chunk& chunk) const;
  // Of what is sharded all but the copy's own are NaN: what an op needs comes from its slots.
  [[nodiscard]] std::span<const float> parameters(Stage stage, int replica) const {
    return copies_[index(stage, replica)].parameters;
  }
  // Those of the model, from all copies.
  [[nodiscard]] Parameters<float> parameters() const;
  // The optimizer steps of the run that were skipped, ascending. Not while it runs.
  [[nodiscard]] std::vector<SkippedStep> skipped() const;

 private:
  // A step that a copy skipped, or in which a gradient of its own, the first, was not finite.
  struct Skip {
    int step = 0;
    bool skips = false;
    std::optional<Microbatch> first;
  };
  // One copy of one stage, on the rank that holds it.
  struct Copy {
    int step = 0;   // that is being computed
    int steps = 0;  // that STEP has ended
    std::vector<float> parameters;
    OrderedSum<float> gradient;
    std::vector<float> losses;   // [microbatch]
    std::vector<float> reduced;  // the gradient over all copies, as STEP found it
    // [microbatch] what F saved, while it is on the host.
    std::map<Microbatch, std::vector<float>> offloaded;
    std::optional<Microbatch> not_finite;  // the first in this step
    std::vector<Skip> skips;
  };
  // The op as one of its step, and which step that is.
  struct Placed {
    Op op;
    int step = 0;
  };
  [[nodiscard]] Placed placed(const exec::ComputeCall& call, const Op& op) const;
  [[nodiscard]] std::vector<CopyResult> results() const;
  [[nodiscard]] std::size_t index(Stage stage, int replica) const {
    return static_cast<std::size_t>(replica) * static_cast<std::size_t>(model_.stages()) +
           static_cast<std::size_t>(stage);
  }
  void one(const exec::ComputeCall& call, const Op& op, const exec::OpBuffers& buffers);
  void write_sums(const exec::ComputeCall& call, Stage stage, const exec::OpBuffers& buffers);
  void norm(const exec::ComputeCall& call);
  void step(const exec::ComputeCall& call);
  void validate(const exec::ComputeCall& call);
  // STEP with the norm's sum of squares, or without one; not where gradients are not finite.
  void step_or_skip(const Op& op, Copy& copy, std::optional<float> squares) const;
  // The gradient over all copies, as the sums of a STEP or VALIDATE have it.
  void read_gradient(const exec::ComputeCall& call, const exec::OpBuffers& buffers,
                     Copy& copy) const;
  void begin(const Chunk& chunk, Copy& copy, int step) const;
  void forward(int step, const Op& op, std::span<const float> parameters,
               const Operands<float>& operands, Copy& copy);
  void backward(int step, const Op& op, std::span<const float> parameters,
                const Operands<float>& operands, Copy& copy);
  void unshard(const exec::ComputeCall& call);
  // The parameters an op works with: what its slots hold where they are sharded, put together in
  // `gathered`, else the copy's own.
  [[nodiscard]] std::span<const float> parameters_for(const Op& op,
                                                      std::span<const exec::Buffer> units,
                                                      std::vector<float>& gathered) const;
  void check_units(const Op& op, std::span<const exec::Buffer> units) const;
  [[nodiscard]] Operands<float> operands(const Op& op, const exec::OpBuffers& buffers) const;
  [[nodiscard]] OrderedSum<float> zero_gradient(const Chunk& chunk) const;

  const Model<float>& model_;
  const Problem& problem_;
  const Sgd sgd_;
  const Poison poison_;
  const int consecutive_;
  const GradientSums sums_;
  const Shards shards_;
  std::vector<Copy> copies_;  // [replica * stages + stage]
};

}  // namespace counterflow::reference

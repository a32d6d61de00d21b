#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

// Parameters that several stages hold, such as an embedding that is also the output layer.
struct TiedParameters {
  std::vector<Stage> stages;  // ascending, two at least
  Bytes size;  // of their gradients in each of the stages; part of Optimizer::gradients
};

// When a step answers for the norm of all gradients: before it is made, so that every rank waits
// for all others, or after (Qi et al. 2023, arXiv:2401.10241, section 4).
enum class Validation : std::uint8_t { before, after };

// When a rank frees the whole parameters of a stage again.
enum class Resharding : std::uint8_t {
  after_use,  // before it computes for another stage
  never,      // not between the first and the last use of the step
};

// Fully sharded data parallelism (FSDP, ZeRO-3): every rank that holds a copy of a stage keeps a
// shard of its parameters, gradients and optimizer state. The whole parameters are gathered before
// they are needed (unshard) and freed after (reshard); gradients are reduced to the shards, and a
// step works on a shard alone. Zhao et al.: PyTorch FSDP, VLDB 16(12), 2023.
struct Sharding {
  std::vector<Bytes> parameters;  // [stage] whole, as gathered
  Resharding reshard = Resharding::after_use;
  int prefetch = 1;  // how many computes of the rank ahead of the first that needs it
};

// What follows the last weight gradient of a step: copies of a stage, in both directions and in all
// pipelines side by side, and stages with tied
// parameters, add their gradients up; then each stage makes its step.
struct Optimizer {
  int data_parallel = 1;             // pipelines side by side, each with microbatches of its own
  std::vector<Bytes> gradients;      // [stage] FP32
  Bytes bucket;                      // the most one reduction takes; 0: a stage's all at once
  std::vector<Time> step;            // [stage]
  bool global_norm = false;          // every step goes by the norm of all gradients
  std::vector<TiedParameters> tied;  // no stage twice
  std::optional<Sharding> sharding;  // absent: every copy holds its stages whole
  Validation validation = Validation::before;
  std::vector<Time> validate{};   // [stage] how long VALIDATE takes; empty where there is none
  std::vector<Bytes> snapshot{};  // [stage] what STEP keeps, to be taken back; likewise

  // Are steps made before the norm is known?
  [[nodiscard]] bool validates() const { return global_norm && validation == Validation::after; }
};

}  // namespace counterflow

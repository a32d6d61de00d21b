#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "executor/memory.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// The buffers of one op, by what they mean; each list in the declared order of the stage's edges,
// sums as GradientSums lists them, behind them the norm where there is one (NORM writes it), then
// what STEP keeps for VALIDATE.
// Sizes are those of the program's slots.
struct OpBuffers {
  std::vector<Buffer> inputs;            // activations that came in (F, and again B, I, W)
  std::vector<Buffer> output_gradients;  // B, I, W
  std::vector<Buffer> outputs;           // of F: activations; of B and I: input gradients
  Buffer saved;  // F writes it, B reads it, I changes it for W; what moves it
                 // out or makes it again rewrites it
  // Where they are sharded: the units of the stage (F, B, I, W read them, RESHARD frees them);
  // UNSHARD has the shard before them, STEP the shard alone.
  std::vector<Buffer> parameters;
  std::vector<Buffer> sums;  // weight gradients: B and W add to them, NORM and steps read them
};

// One `run` instruction, as the machine hands it to the compute.
struct ComputeCall {
  Rank rank = 0;
  int step = 0;
  StreamId stream = 0;
  const Kernel* kernel = nullptr;
  Op op;
  Op paired;  // the backward of a fused pair, else none
  std::span<const Access> accesses;
  RankMemory* memory = nullptr;

  // The buffers of `op`, and of `paired`. They allocate: for computes that do real work.
  [[nodiscard]] OpBuffers buffers() const;
  [[nodiscard]] OpBuffers paired_buffers() const;
};

// What runs call: a model's stages, or something that only takes its time. A backend calls one
// rank's runs of one stream in order; different ranks, and different streams of a rank, may call at
// the same time from different threads. An exception thrown here stops the run and is reported with
// the instruction.
class Compute {
 public:
  virtual ~Compute() = default;
  virtual void run(const ComputeCall& call) = 0;
  // Before the first and after the last instruction of a step, once a rank.
  virtual void begin_step(Rank, int /*step*/) {}
  virtual void end_step(Rank, int /*step*/) {}
};

}  // namespace counterflow::exec

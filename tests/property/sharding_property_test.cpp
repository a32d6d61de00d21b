#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/threads.h"
#include "executor/virtual_streams.h"
#include "reference/model_compute.h"
#include "scheduler/passes/compile.h"
#include "scheduler/passes/in_steps.h"
#include "scheduler/problem/copies.h"
#include "scheduler/problem/steps.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "simulator/simulate.h"
#include "tests/support/interleavings.h"
#include "tests/support/optimizers.h"
#include "tests/support/phases.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"
#include "tests/support/rank_mutations.h"
#include "tests/support/value_compute.h"

// Programs with sharded parameters: what a compute reads comes from the slots that were gathered,
// so a gather that is wrong, late or freed too early gives other numbers.
namespace counterflow {
namespace {

using reference::ModelCompute;
using testing::OptimizerShape;
using testing::sharded;
using testing::ValueCompute;

constexpr reference::MlpShape kShape{.rows = 2, .width = 3, .hidden = 4};
constexpr int kSteps = 3;

// Every way in which parameters are sharded.
std::vector<Sharding> policies() {
  std::vector<Sharding> all;
  for (const Resharding reshard : {Resharding::after_use, Resharding::never}) {
    for (const int prefetch : {0, 1, 2}) all.push_back(sharded(reshard, prefetch));
  }
  return all;
}

// A model in shards, and the program that trains it.
struct Trainee {
  Trainee(const Family& family, const Problem& pipeline, const OptimizerShape& shape)
      : one(testing::with_optimizer(pipeline, shape)),
        wanted(in_copies(one)),
        model(reference::mlp_model<float>(wanted, kShape, 17)),
        problem(reference::with_sizes_of(model, wanted)),
        program(compile(problem, in_copies(one, generate(family, one)))) {}

  Problem one, wanted;
  reference::Model<float> model;
  Problem problem;
  Program program;
};

void expect_training(exec::Backend& backend, const Trainee& trainee, std::uint64_t seed) {
  const reference::Sgd sgd{.rate = 0.5F, .clip = 0.1F};
  const Diagnostics faults = verify(trainee.problem, trainee.program).diagnostics;
  ASSERT_TRUE(faults.empty()) << faults.front().rule << ": " << faults.front().message;
  ModelCompute compute(trainee.model, trainee.problem, sgd);
  ExecutionModel execution = seed % 2 == 0 ? ExecutionModel::nccl() : ExecutionModel::gloo();
  if (seed % 3 == 0) execution.hardware_queues = 1;
  const exec::RunResult run = backend.run(trainee.program, compute,
                                          {.steps = kSteps, .seed = seed, .execution = execution});
  ASSERT_FALSE(run.failure) << run.failure->reason;
  if (trainee.problem.forward_only) return;
  const auto expected =
      reference::single_process_training(trainee.model, trainee.problem, sgd, kSteps);
  EXPECT_TRUE(compute.result() == expected.last);
  EXPECT_TRUE(compute.parameters() == expected.parameters);
  EXPECT_NE(expected.parameters, reference::initial_parameters(trainee.model));
}

OptimizerShape shape_for(std::uint64_t seed, int copies, const Sharding& sharding) {
  return {.bucket = Bytes{seed % 2 == 0 ? 64 : 0},
          .tied = Bytes{seed % 4 < 2 ? 40 : 0},
          .global_norm = seed % 3 != 0,
          .data_parallel = copies,
          .sharding = sharding};
}

TEST(Sharding, TrainsLikeOneProcess) {
  exec::VirtualStreams backend;
  std::uint64_t seed = 0;
  for (const Family& family : families()) {
    for (const int ranks : {1, 2, 4}) {
      const auto pipeline = testing::ragged_problem(family, ranks);
      if (!pipeline) continue;
      for (const Sharding& sharding : policies()) {
        // Few of the largest: the others have shown it.
        if (ranks == 4 && seed % 3 != 0) {
          ++seed;
          continue;
        }
        const int copies = 2 + static_cast<int>(seed / 2 % 2);
        SCOPED_TRACE(std::string(family.name) + " p=" + std::to_string(ranks) +
                     " copies=" + std::to_string(copies) + " seed=" + std::to_string(seed));
        expect_training(backend, Trainee(family, *pipeline, shape_for(seed, copies, sharding)),
                        seed);
        ++seed;
      }
    }
  }
  EXPECT_GT(seed, 200U);
}

TEST(Sharding, TrainsUnderManyInterleavings) {
  exec::VirtualStreams backend;
  for (const char* name : {"interleaved-1f1b", "zbv", "dualpipev", "dualpipe"}) {
    const Family& family = *find_family(name);
    const Trainee trainee(family, *testing::ragged_problem(family, 2),
                          shape_for(1, 2, sharded(Resharding::after_use, 1)));
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(std::string(name) + " seed=" + std::to_string(seed));
      expect_training(backend, trainee, seed);
    }
  }
}

TEST(Sharding, TrainsOnThreads) {
  exec::Threads backend;
  std::uint64_t seed = 0;
  for (const char* name : {"1f1b", "interleaved-1f1b", "zbv", "dualpipe", "hanayo"}) {
    const Family& family = *find_family(name);
    for (const Sharding& sharding : policies()) {
      SCOPED_TRACE(std::string(name) + " seed=" + std::to_string(seed));
      expect_training(
          backend,
          Trainee(family, *testing::ragged_problem(family, 2), shape_for(seed, 2, sharding)), seed);
      ++seed;
    }
  }
}

// Ranks of a bidirectional placement that do not keep step with each other, passes that only go
// forward after the last gradient, stages without gradients, and stages that recompute.
TEST(Sharding, TrainsWhateverThePipeline) {
  exec::VirtualStreams backend;
  std::uint64_t seed = 0;
  for (const char* name : {"chimera", "dualpipe", "interleaved-1f1b", "zbv"}) {
    const Family& family = *find_family(name);
    for (const Sharding& sharding : policies()) {
      SCOPED_TRACE(std::string(name) + " seed=" + std::to_string(seed));
      Problem pipeline = *testing::ragged_problem(family, 4);
      std::vector<StageCost> costs = pipeline.costs.stages();
      for (std::size_t s = 0; s < costs.size(); ++s) {
        costs[s].forward += Time{static_cast<std::int64_t>(3 * s)};
      }
      pipeline.costs = Costs(std::move(costs), {}, {});
      testing::set_phases(pipeline, {{PhaseKind::eval, 4},
                                     {PhaseKind::train, 8},
                                     {PhaseKind::log_prob, 2},
                                     {PhaseKind::train, 8}});
      if (family.placement != PlacementKind::bidirectional) pipeline.frozen[1] = 1;
      std::vector<Keeping> keeping(static_cast<std::size_t>(pipeline.stages()));
      keeping[0] = {.kind = KeepingKind::recompute, .store = {}, .restore = Time{3}, .kept = {}};
      pipeline = with_keeping(std::move(pipeline), std::move(keeping));
      expect_training(backend, Trainee(family, pipeline, shape_for(seed, 2, sharding)), seed);
      ++seed;
    }
  }
}

// No barrier between steps: what the next one gathers is what the last has stepped to.
TEST(Sharding, TrainsConsecutiveSteps) {
  exec::VirtualStreams backend;
  const reference::Sgd sgd{.rate = 0.5F, .clip = 0.1F};
  std::uint64_t seed = 0;
  for (const char* name : {"1f1b", "interleaved-1f1b", "zbv", "dualpipe"}) {
    const Family& family = *find_family(name);
    for (const Sharding& sharding : policies()) {
      SCOPED_TRACE(std::string(name) + " seed=" + std::to_string(seed));
      const Trainee trainee(family, *testing::ragged_problem(family, 2),
                            shape_for(seed, 2, sharding));
      const Program all = in_steps(trainee.problem, trainee.program, kSteps);
      const Diagnostics faults = verify(in_steps(trainee.problem, kSteps), all).diagnostics;
      ASSERT_TRUE(faults.empty()) << faults.front().rule << ": " << faults.front().message;
      ModelCompute compute(trainee.model, trainee.problem, sgd, {}, kSteps);
      const exec::RunResult run = backend.run(all, compute, {.seed = seed++});
      ASSERT_FALSE(run.failure) << run.failure->reason;
      const auto expected =
          reference::single_process_training(trainee.model, trainee.problem, sgd, kSteps);
      EXPECT_TRUE(compute.result() == expected.last);
      EXPECT_TRUE(compute.parameters() == expected.parameters);
    }
  }
}

// With the norm every rank skips a step that is not finite, without it those whose shards are not.
TEST(Sharding, SkipsWhatIsNotFinite) {
  exec::VirtualStreams backend;
  const reference::Sgd sgd{.rate = 0.5F, .clip = 0.1F};
  for (const char* name : {"1f1b", "interleaved-1f1b", "zbv", "dualpipe"}) {
    const Family& family = *find_family(name);
    for (const bool global_norm : {true, false}) {
      OptimizerShape shape = shape_for(1, 2, sharded(Resharding::after_use, 1));
      shape.global_norm = global_norm;
      const Trainee trainee(family, *testing::ragged_problem(family, 2), shape);
      // Seen by the second pipeline; the element is of the first one's shard.
      const auto microbatch = static_cast<Microbatch>(trainee.problem.microbatches - 2);
      const reference::Poison poison{.step = 1,
                                     .op = {OpKind::backward_weight, 0, 1, microbatch},
                                     .value = std::numeric_limits<float>::infinity()};
      ModelCompute compute(trainee.model, trainee.problem, sgd, poison);
      const auto run = backend.run(trainee.program, compute, {.steps = kSteps, .seed = 7});
      ASSERT_FALSE(run.failure) << run.failure->reason;
      const auto expected =
          reference::single_process_training(trainee.model, trainee.problem, sgd, kSteps, poison);
      ASSERT_EQ(expected.skipped.size(), 1U);
      EXPECT_EQ(expected.skipped[0].whole, global_norm);
      EXPECT_TRUE(compute.skipped() == expected.skipped) << name;
      EXPECT_TRUE(compute.parameters() == expected.parameters) << name;
    }
  }
}

// A random pipeline twice side by side, its stages of 48 B.
struct Sharded {
  Problem problem;
  Program program;
};
Sharded random_sharded(testing::RandomProblems& problems, std::uint64_t n) {
  testing::RandomProblems::Sample sample = problems.next();
  // One microbatch is of one direction alone.
  while (sample.problem.placement.directions() > sample.problem.microbatches) {
    sample = problems.next();
  }
  auto& [family, one] = sample;
  for (Bytes& size : one.message) size = Bytes{16};
  for (StageMemory& memory : one.memory) memory = {Bytes{32}, Bytes{16}};
  Sharding sharding =
      sharded(n % 4 == 0 ? Resharding::never : Resharding::after_use, static_cast<int>(n % 3));
  sharding.parameters = {Bytes{96}};
  one = testing::with_optimizer(std::move(one), {.gradients = Bytes{192},
                                                 .bucket = Bytes{n % 2 == 0 ? 96 : 0},
                                                 .tied = Bytes{0},
                                                 .global_norm = n % 5 == 0,
                                                 .data_parallel = 2,
                                                 .sharding = sharding});
  Sharded result{in_copies(one), {}};
  result.program = compile(result.problem, in_copies(one, generate(*family, one)));
  return result;
}

TEST(Sharding, ProofsRejectEveryMutantThatComputesSomethingElse) {
  testing::RandomProblems problems(21);
  std::mt19937_64 random(22);
  std::map<std::string, std::map<std::string, int>> counts;
  for (std::uint64_t n = 0; n < 900; ++n) {
    const auto [problem, program] = random_sharded(problems, n);
    const auto& mutation = testing::kRankMutations[n % std::size(testing::kRankMutations)];
    Program mutant = program;
    const auto which = testing::draw(random, 0, std::ssize(mutant.ranks) - 1);
    RankProgram& rank = mutant.ranks[static_cast<std::size_t>(which)];
    if (!mutation.mutate(rank, random)) continue;
    const Diagnostics faults = verify(problem, mutant).diagnostics;
    auto& count = counts[mutation.name];
    if (!faults.empty()) {
      ++count[faults.front().rule];
      continue;
    }
    ++count["accepted, same values"];
    ASSERT_TRUE(testing::values_of(mutant) == testing::values_of(program))
        << mutation.name << ", mutant " << n;
  }
  for (const auto& [mutation, reasons] : counts) {
    std::cout << mutation << ":";
    for (const auto& [reason, times] : reasons) std::cout << "  " << reason << " " << times;
    std::cout << "\n";
  }
  EXPECT_GT(counts["drop a wait"]["race"], 50);
  EXPECT_EQ(counts["drop a wait"]["accepted, same values"], 0);
  EXPECT_EQ(counts["another version"]["accepted, same values"], 0);
}

// Takes an instruction out as if it had never been: nobody waits for it, and collectives are
// numbered by their place.
void drop(RankProgram& rank, std::size_t at) {
  const Instruction gone = rank.instructions[at];
  rank.instructions.erase(rank.instructions.begin() + static_cast<std::ptrdiff_t>(at));
  if (gone.kind == InstructionKind::collective) {
    rank.collectives.erase(rank.collectives.begin() + gone.body.first);
  }
  std::map<CommunicatorId, std::uint32_t> calls;
  for (Instruction& i : rank.instructions) {
    const auto waits = std::span(rank.waits).subspan(i.waits.first, i.waits.count);
    const auto end = std::remove_if(waits.begin(), waits.end(),
                                    [&](const EventWait& w) { return w.event == gone.records; });
    i.waits.count = static_cast<std::uint32_t>(end - waits.begin());
    if (i.kind != InstructionKind::collective) continue;
    if (gone.kind == i.kind && i.body.first > gone.body.first) --i.body.first;
    rank.collectives[i.body.first].sequence = calls[i.communicator]++;
  }
}

// The n-th instruction of a rank that is about parameters, if there are so many.
std::optional<std::size_t> nth_action(const RankProgram& rank, std::size_t n) {
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    const OpKind kind = rank.instructions[i].op.kind;
    if ((kind == OpKind::unshard || kind == OpKind::reshard) && n-- == 0) return i;
  }
  return std::nullopt;
}

// What all ranks do alike may be wrong too: a gather that none of them makes, or that each makes of
// what is not in its place. Of the RESHARDs the last of a slot is missed by nobody.
TEST(Sharding, ProofsRejectProgramsWithoutOneOfTheirGathers) {
  testing::RandomProblems problems(31);
  int rejected = 0;
  for (std::uint64_t n = 0; n < 40; ++n) {
    const auto [problem, program] = random_sharded(problems, n);
    for (std::size_t k = 0;; ++k) {
      Program mutant = program;
      bool any = false;
      bool frees = true;
      for (RankProgram& rank : mutant.ranks) {
        const auto at = nth_action(rank, k);
        if (!at) continue;
        any = true;
        frees &= rank.instructions[*at].op.kind == OpKind::reshard;
        drop(rank, *at);
      }
      if (!any) break;
      const Diagnostics faults = verify(problem, mutant).diagnostics;
      if (frees && faults.empty()) {
        EXPECT_TRUE(testing::values_of(mutant) == testing::values_of(program)) << "program " << n;
      } else {
        EXPECT_FALSE(faults.empty()) << "program " << n << " without action " << k;
        ++rejected;
      }
    }
  }
  EXPECT_GT(rejected, 200);
}

// Under every rule of a machine, programs of all kinds end, and hold no more than what is counted.
TEST(Sharding, EndsUnderEveryExecutionModel) {
  testing::RandomProblems problems(41);
  for (std::uint64_t n = 0; n < 80; ++n) {
    const auto [problem, program] = random_sharded(problems, n);
    const ProgramVerdict verdict = verify(problem, program);
    ASSERT_TRUE(verdict.diagnostics.empty()) << n << ": " << verdict.diagnostics.front().rule << " "
                                             << verdict.diagnostics.front().message;
    for (ExecutionModel model :
         {ExecutionModel::ideal(), ExecutionModel::nccl(), ExecutionModel::gloo()}) {
      for (const Semantics semantics : kAllSemantics) {
        for (const int queues : {0, 1, 3}) {
          model.semantics = semantics;
          model.hardware_queues = queues;
          const Simulation simulation = simulate(program, problem.links, model);
          ASSERT_TRUE(simulation.diagnostics.empty()) << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace counterflow

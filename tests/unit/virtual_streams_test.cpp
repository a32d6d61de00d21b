#include "executor/virtual_streams.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/node.h"
#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"
#include "tests/support/programs.h"
#include "tests/unit/allocations.h"

// What an instruction costs on virtual streams, in what can be counted: a time would say more of
// the machine than of the code.

namespace counterflow {
namespace {

using exec::Followers;
using exec::Node;

struct Nothing final : exec::Compute {
  void run(const exec::ComputeCall&) override {}
};

Program program_of(std::string_view name, int ranks, int microbatches) {
  const Family& family = *find_family(name);
  const Problem problem =
      testing::family_problem(family, ranks, family.default_chunks, microbatches);
  return compile(problem, generate(family, problem));
}

// Steps whose results nobody keeps.
std::size_t allocations_of(const Program& program, std::uint64_t seed, int steps) {
  Nothing compute;
  exec::VirtualStreams backend;
  const std::size_t before = testing::allocations();
  const exec::RunResult result =
      backend.run(program, compute, {.steps = steps, .seed = seed, .measured = [](Timeline) {}});
  EXPECT_FALSE(result.failure);
  return testing::allocations() - before;
}

TEST(VirtualStreams, AStepAllocatesForEachRankAndForNoInstruction) {
  const Program small = program_of("interleaved-zb", 4, 8);
  const Program large = program_of("interleaved-zb", 4, 64);
  ASSERT_GT(large.size(), 6 * small.size());
  for (const std::uint64_t seed : {0U, 1U}) {
    for (const Program* program : {&small, &large}) {
      const std::size_t ten_steps =
          allocations_of(*program, seed, 12) - allocations_of(*program, seed, 2);
      EXPECT_LE(ten_steps, 10 * (program->ranks.size() + 1)) << program->size();
    }
  }
}

// What a buffered send has left is gone once it has arrived: the next step has to make it anew.
TEST(VirtualStreams, HoldNoMessageThatHasArrived) {
  const Family& family = *find_family("1f1b");
  Problem problem = testing::family_problem(family, 4, 1, 16);
  problem.message.assign(problem.message.size(), Bytes{64});
  const Program program = compile(problem, generate(family, problem));
  std::size_t sends = 0;
  for (const RankProgram& rank : program.ranks) {
    for (const Transfer& each : rank.transfers) sends += each.is_send ? 1U : 0U;
  }
  const auto allocations_under = [&](const ExecutionModel& rules, int steps) {
    Nothing compute;
    exec::VirtualStreams backend;
    const std::size_t before = testing::allocations();
    EXPECT_FALSE(backend
                     .run(program, compute,
                          {.steps = steps, .execution = rules, .measured = [](Timeline) {}})
                     .failure);
    return testing::allocations() - before;
  };
  const ExecutionModel buffered = ExecutionModel::ideal();
  ASSERT_EQ(buffered.semantics, Semantics::buffered);
  EXPECT_GE(allocations_under(buffered, 4) - allocations_under(buffered, 3), sends);
}

struct Model {
  Program program;
  Matching matching;
  Prerequisites prerequisites;
  std::vector<exec::RankMemory> memories;
  exec::Exchange exchange;
  std::vector<Node> nodes;
  std::vector<Followers> followers;

  Model(Program what, const ExecutionModel& rules)
      : program(std::move(what)),
        matching(program),
        prerequisites(program, rules),
        memories(program.ranks.begin(), program.ranks.end()),
        exchange(program, matching, rules.semantics, memories, exec::Posting::one_thread),
        nodes(exec::nodes_of(program, prerequisites, exchange)),
        followers(exec::followers_of(prerequisites)) {}
};

TEST(VirtualStreams, MostInstructionsAreOfTheQuickShapesAndWakeFew) {
  for (const Family& family : families()) {
    for (const ExecutionModel& rules :
         {ExecutionModel::ideal(), ExecutionModel::nccl(), ExecutionModel::gloo()}) {
      SCOPED_TRACE(std::string(family.name) + " " + rules.name);
      const Model model(program_of(family.name, 4, 24), rules);
      const std::size_t size = model.program.size();
      std::size_t others = 0;
      std::size_t woken = 0;
      for (Prerequisites::Index index = 0; index < size; ++index) {
        if (model.nodes[index].shape == Node::Shape::other) ++others;
        woken += model.prerequisites.after_begin(index).size() +
                 model.prerequisites.after_end(index).size();
      }
      EXPECT_LE(others, size / 5);
      EXPECT_LE(woken, 4 * size);
    }
  }
}

TEST(VirtualStreams, ANodeSaysWhatItsInstructionSays) {
  const Model model(program_of("dualpipe", 4, 12), ExecutionModel::nccl());
  const auto nobody = static_cast<Prerequisites::Index>(model.program.size());
  ASSERT_EQ(model.nodes.size(), nobody);
  ASSERT_EQ(model.followers.size(), nobody);
  for (Prerequisites::Index index = 0; index < nobody; ++index) {
    const Node& node = model.nodes[index];
    const std::uint32_t rank = model.prerequisites.rank(index);
    const Instruction& what =
        model.program.ranks[rank].instructions[model.prerequisites.instruction(index)];
    if (node.shape == Node::Shape::other) continue;
    EXPECT_EQ(node.rank, rank);
    EXPECT_EQ(node.op, what.op);
    EXPECT_EQ(node.paired, what.paired);
    const bool is_run = node.shape == Node::Shape::run;
    EXPECT_EQ(what.kind, is_run ? InstructionKind::run : InstructionKind::transfer);
    EXPECT_EQ(node.body.count, is_run ? what.body.count : 1U);
    EXPECT_EQ(node.body.first, is_run ? what.body.first : model.exchange.id(rank, what.body.first));
    const auto begins = model.prerequisites.after_begin(index);
    const Followers& followers = model.followers[index];
    EXPECT_EQ(followers.after_begin, begins.empty() ? nobody : begins.front());
    const auto ends = model.prerequisites.after_end(index);
    for (std::size_t k = 0; k < Followers::kMost; ++k) {
      EXPECT_EQ(followers.after_end[k], k < ends.size() ? ends[k] : nobody);
    }
  }
}

// Where nothing is drawn the later steps follow the first, groups, collectives and buffered sends
// too.
TEST(VirtualStreams, EveryStepGoesInTheOrderOfTheFirst) {
  struct Recording final : exec::Compute {
    void run(const exec::ComputeCall& call) override { runs.emplace_back(call.rank, call.op); }
    std::vector<std::pair<Rank, Op>> runs;
  };
  for (const Family& family : families()) {
    Problem problem = testing::with_optimizer(
        testing::family_problem(family, 4, family.default_chunks, 12), {.global_norm = true});
    problem.forward_only = family.forward_only;
    const Program program = compile(problem, generate(family, problem));
    for (const ExecutionModel& rules :
         {ExecutionModel::ideal(), ExecutionModel::nccl(), ExecutionModel::gloo()}) {
      SCOPED_TRACE(std::string(family.name) + " " + rules.name);
      Recording once;
      const exec::RunResult one = exec::VirtualStreams().run(program, once, {.execution = rules});
      for (const bool clock : {false, true}) {
        Recording compute;
        const exec::RunResult three =
            exec::VirtualStreams(clock).run(program, compute, {.steps = 3, .execution = rules});
        ASSERT_FALSE(three.failure) << three.failure->reason;
        ASSERT_EQ(three.steps.size(), 3U);
        ASSERT_EQ(compute.runs.size(), 3 * once.runs.size());
        for (std::size_t i = 0; i < compute.runs.size(); ++i) {
          ASSERT_EQ(compute.runs[i], once.runs[i % once.runs.size()]) << i;
        }
        for (const Timeline& step : three.steps) {
          if (!clock) {
            EXPECT_EQ(step, one.steps[0]);
          }
        }
      }
    }
  }
}

// What is told of a step that stops is that step's own, whatever the steps before it have left.
TEST(VirtualStreams, AFailureOfALaterStepTellsOnlyOfThatStep) {
  struct FailsIn final : exec::Compute {
    explicit FailsIn(int which) : step(which) {}
    void run(const exec::ComputeCall& call) override {
      if (call.step == step && call.op == Op{OpKind::backward, 0, 1, 1}) {
        throw std::runtime_error("not a number");
      }
    }
    int step;
  };
  const Program program = testing::one_forward_one_backward(3, 4);
  exec::VirtualStreams backend;
  exec::VirtualStreams with_clock(true);
  FailsIn first(0);
  FailsIn third(2);
  const exec::RunResult a = backend.run(program, first, {.steps = 3});
  const exec::RunResult b = backend.run(program, third, {.steps = 3});
  const exec::RunResult c = with_clock.run(program, third, {.steps = 3});
  ASSERT_TRUE(a.failure && b.failure && c.failure);
  EXPECT_EQ(b.failure->step, 2);
  EXPECT_EQ(b.steps.size(), 2U);
  ASSERT_EQ(a.stopped.size(), 3U);
  ASSERT_EQ(b.stopped.size(), 3U);
  ASSERT_EQ(c.stopped.size(), 3U);
  std::size_t not_begun = 0;
  for (std::size_t r = 0; r < 3; ++r) {
    const std::vector<Interval>& its = b.stopped[r]->instructions;
    EXPECT_EQ(a.stopped[r]->instructions, its);
    for (std::size_t i = 0; i < its.size(); ++i) {
      const Interval& timed = c.stopped[r]->instructions[i];
      EXPECT_EQ(timed.begin == exec::kNotYet, its[i].begin == exec::kNotYet) << i;
      EXPECT_EQ(timed.end == exec::kNotYet, its[i].end == exec::kNotYet) << i;
    }
    for (const Interval& each : its) {
      if (each.begin != exec::kNotYet) continue;
      ++not_begun;
      EXPECT_EQ(each.end, exec::kNotYet);
    }
  }
  EXPECT_GT(not_begun, 0U);
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/threads.h"
#include "reference/model_compute.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/rules.h"
#include "scheduler/verify/verify.h"
#include "simulator/simulate.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

// Failures of running pipelines that users of other runtimes reported, as programs.
namespace counterflow {
namespace {

using testing::family_problem;
using testing::text;

const Family& family(const char* name) {
  return *find_family(name);
}

// ---- Megatron-LM#5100: neighbours that tell each other shapes ahead of the tensors ------------

struct Exchange {
  bool is_send;
  int way;  // to or from the rank after (1) or before (-1)
};

// Every rank exchanges shapes with its neighbours, both ways, in the order given, on one stream.
Program shapes_in_order(const std::vector<std::vector<Exchange>>& orders) {
  const auto ranks = static_cast<int>(orders.size());
  Program program;
  program.stages = ranks;
  program.microbatches = 1;
  program.communicators.push_back({.kind = CommunicatorKind::pipeline});
  for (int rank = 0; rank < ranks; ++rank) program.communicators[0].members.push_back(rank);
  for (int rank = 0; rank < ranks; ++rank) {
    RankProgram& list = program.ranks.emplace_back();
    list.streams.push_back({.role = StreamRole::p2p});
    for (const auto& [is_send, way] : orders[static_cast<std::size_t>(rank)]) {
      const int peer = rank + way;
      if (peer < 0 || peer >= ranks) continue;
      const auto index = static_cast<std::uint32_t>(list.transfers.size());
      list.transfers.push_back(
          {.is_send = is_send,
           .peer = static_cast<std::uint16_t>(peer),
           .payload = {.kind = PayloadKind::metadata,
                       .from = static_cast<std::uint16_t>(is_send ? rank : peer),
                       .to = static_cast<std::uint16_t>(is_send ? peer : rank)},
           .size = {}});
      list.instructions.push_back(
          {.kind = InstructionKind::transfer, .communicator = 0, .body = {index, 1}});
    }
  }
  return program;
}

TEST(ShapeExchange, HangsInOneFixedOrderAndNotByParity) {
  const std::vector<Exchange> fixed = {{true, -1}, {false, -1}, {true, 1}, {false, 1}};
  const std::vector<Exchange> other = {{false, -1}, {true, -1}, {false, 1}, {true, 1}};
  const ExecutionModel strict{
      .name = "strict", .semantics = Semantics::rendezvous, .independent_transfers = false};

  const Program stuck = shapes_in_order({fixed, fixed, fixed, fixed});
  const References references(stuck);
  EXPECT_TRUE(rules::completes(stuck, references, Semantics::buffered));
  EXPECT_FALSE(rules::completes(stuck, references, Semantics::rendezvous));
  Diagnostics found;
  rules::deadlock(stuck, references, Semantics::rendezvous, found);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].message.find("rank0 0SEND_SHAPE0>1 <-> rank1 1SEND_SHAPE0>0"),
            std::string::npos)
      << found[0].message;
  EXPECT_FALSE(simulate(stuck, Links(Time{1}), strict).diagnostics.empty());

  const Program by_parity = shapes_in_order({fixed, other, fixed, other});
  EXPECT_TRUE(rules::completes(by_parity, References(by_parity), Semantics::rendezvous));
  EXPECT_TRUE(simulate(by_parity, Links(Time{1}), strict).diagnostics.empty());
}

// ---- Megatron-LM#1810: one event lets two collectives go ---------------------------------------

// Two ranks that dispatch and combine on streams of their own, after one run.
Program dispatch_and_combine(bool chained) {
  Program program;
  program.stages = 1;
  program.microbatches = 1;
  program.kernels = {{.kind = OpKind::forward}};
  program.communicators = {{.kind = CommunicatorKind::expert_parallel, .members = {0, 1}}};
  for (int rank = 0; rank < 2; ++rank) {
    RankProgram& list = program.ranks.emplace_back();
    list.streams = {
        {}, {.role = StreamRole::expert_parallel}, {.role = StreamRole::expert_parallel}};
    list.events = 2;
    list.waits = {{.event = 0, .generation = 0}, {.event = chained ? 1U : 0U, .generation = 0}};
    list.collectives = {{.kind = CollectiveKind::all_to_all, .sequence = 0, .size = {}},
                        {.kind = CollectiveKind::all_to_all, .sequence = 1, .size = {}}};
    list.instructions = {{.kernel = 0, .op = {OpKind::forward}, .records = 0},
                         {.kind = InstructionKind::collective,
                          .stream = 1,
                          .communicator = 0,
                          .records = 1,
                          .waits = {0, 1},
                          .body = {0, 1}},
                         {.kind = InstructionKind::collective,
                          .stream = 2,
                          .communicator = 0,
                          .waits = {1, 1},
                          .body = {1, 1}}};
  }
  return program;
}

TEST(Collectives, OfOneEventHaveNoFixedOrder) {
  Diagnostics found;
  const Program at_once = dispatch_and_combine(false);
  rules::races(at_once, References(at_once), found);
  ASSERT_EQ(found.size(), 2U);  // on both ranks
  EXPECT_EQ(found[0].rule, "race");
  EXPECT_NE(found[0].message.find("two collectives on communicator 0 (expert_parallel), all_to_all "
                                  "0 and all_to_all 1, become ready on the same event: their order "
                                  "is not fixed"),
            std::string::npos)
      << found[0].message;

  found.clear();
  const Program chained = dispatch_and_combine(true);
  rules::races(chained, References(chained), found);
  EXPECT_EQ(text(found), "");
}

// ---- PiPPy PR#1088: ranks that are late ---------------------------------------------------------

// The reference model, on ranks that now and then take up to ten times as long.
class Delayed final : public exec::Compute {
 public:
  Delayed(exec::Compute& inner, std::size_t ranks, std::uint64_t seed)
      : inner_(inner), slow_(ranks), order_(ranks) {
    std::mt19937_64 random(seed);
    for (auto& slow : slow_) slow = random() % 2 == 0;
    seed_ = random();
  }
  void run(const exec::ComputeCall& call) override {
    const auto rank = static_cast<std::size_t>(call.rank);
    const std::uint64_t draw = (seed_ ^ (order_[rank].size() * 0x9e3779b97f4a7c15ULL)) % 10;
    if (slow_[rank]) std::this_thread::sleep_for(std::chrono::microseconds(20 * draw));
    order_[rank].push_back(call.op);  // one compute stream a rank
    inner_.run(call);
  }
  void begin_step(Rank rank, int step) override { inner_.begin_step(rank, step); }
  void end_step(Rank rank, int step) override { inner_.end_step(rank, step); }
  [[nodiscard]] const std::vector<std::vector<Op>>& order() const { return order_; }

 private:
  exec::Compute& inner_;
  std::vector<char> slow_;
  std::uint64_t seed_ = 0;
  std::vector<std::vector<Op>> order_;  // [rank]
};

TEST(LateRanks, ChangeNeitherTheOrderNorAGradient) {
  const Family& interleaved = family("interleaved-1f1b");
  const Problem small = family_problem(interleaved, 4, 2, 8);
  const auto model = reference::mlp_model<float>(small, {.rows = 2, .width = 3, .hidden = 4}, 3);
  const Problem problem = reference::with_sizes_of(model, small);
  const Program program = compile(problem, generate(interleaved, problem));
  const auto expected =
      reference::single_process_step(model, problem, reference::initial_parameters(model));
  std::vector<std::vector<Op>> order;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    reference::ModelCompute compute(model, problem);
    Delayed delayed(compute, program.ranks.size(), seed);
    exec::Threads threads;
    const auto run = threads.run(program, delayed, {.seed = seed});
    ASSERT_FALSE(run.failure) << run.failure->reason;
    EXPECT_TRUE(compute.result() == expected) << seed;
    if (seed == 0) order = delayed.order();
    EXPECT_EQ(delayed.order(), order) << seed;
  }
}

// ---- Megatron-LM PR#5876: too few receive buffers at the border of the steady state ------------

bool receives_activation(const Transfer& transfer) {
  return !transfer.is_send && transfer.payload.kind == PayloadKind::activation;
}

// The program with the activations that a rank receives in a ring of `depth` buffers.
Program with_ring(Program program, std::size_t rank, std::uint32_t depth) {
  RankProgram& list = program.ranks[rank];
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, std::uint32_t>> moved;
  const auto base = static_cast<std::uint32_t>(list.slots.size());
  Bytes end;
  for (const BufferSlot& slot : list.slots) end = std::max(end, slot.offset + slot.size);
  for (std::uint32_t k = 0; k < depth; ++k) {
    list.slots.push_back({.pool = BufferPool::activations,
                          .offset = Bytes{end.value + std::int64_t{64} * k},
                          .size = Bytes{64}});
  }
  std::uint32_t next = 0;
  for (Transfer& transfer : list.transfers) {
    if (!receives_activation(transfer)) continue;
    const std::pair to{base + next % depth, next / depth + 1};
    moved[{transfer.slot, transfer.version}] = to;
    std::tie(transfer.slot, transfer.version) = to;
    ++next;
  }
  for (Access& access : list.accesses) {
    const auto found = moved.find({access.slot, std::uint32_t{access.version}});
    if (found == moved.end() || access.is_write != 0) continue;
    access.slot = found->second.first;
    access.version = found->second.second & 0x7fffffffU;
  }
  return program;
}

// Every receive of an activation right before the forward that needs it, none ahead.
Program with_late_receives(Program program, std::size_t rank) {
  RankProgram& list = program.ranks[rank];
  std::map<Microbatch, Instruction> waiting;
  std::vector<Instruction> order;
  for (const Instruction& i : list.instructions) {
    const auto transfers = list.transfers_of(i);
    if (!transfers.empty() && receives_activation(transfers.front())) {
      waiting[transfers.front().payload.microbatch] = i;
      continue;
    }
    if (i.op.kind == OpKind::forward) order.push_back(waiting.at(i.op.microbatch));
    order.push_back(i);
  }
  list.instructions = std::move(order);
  return program;
}

TEST(ReceiveBuffers, MustBeAsManyAsAreInFlight) {
  Problem problem = family_problem(family("1f1b"), 4, 1, 8);
  problem.message.assign(4, Bytes{64});
  const Program program = compile(problem, generate(family("1f1b"), problem));
  ASSERT_EQ(text(verify(problem, program).diagnostics), "");
  for (std::size_t rank = 1; rank < 4; ++rank) {
    const auto in_flight = static_cast<std::uint32_t>(4 - rank);
    for (std::uint32_t depth = 1; depth <= in_flight + 1; ++depth) {
      const Program ring = with_ring(with_late_receives(program, rank), rank, depth);
      const Diagnostics faults = verify(problem, ring).diagnostics;
      // With enough of them every value is there when it is read; that a receive waits for whoever
      // read the one before is another matter.
      const bool lost = std::ranges::any_of(
          faults, [](const Diagnostic& fault) { return fault.rule == "version"; });
      EXPECT_EQ(lost, depth < in_flight) << rank << " " << depth << "\n" << text(faults);
    }
  }
}

// ---- pytorch#136380, PR#193872: a set of buffers for each microbatch ---------------------------

TEST(ReceiveBuffers, DoNotGrowWithMicrobatches) {
  const auto buffers = [](const char* name, int microbatches) {
    Problem problem = family_problem(family(name), 4, family(name).default_chunks, microbatches);
    problem.message.assign(static_cast<std::size_t>(problem.stages()), Bytes{64});
    const Program program = compile(problem, generate(family(name), problem));
    std::vector<std::size_t> counts;
    for (const RankProgram& rank : program.ranks) {
      std::map<PayloadKind, std::set<std::uint32_t>> slots;
      for (const Transfer& transfer : rank.transfers) {
        if (!transfer.is_send) slots[transfer.payload.kind].insert(transfer.slot);
      }
      counts.push_back(slots[PayloadKind::activation].size());
      counts.push_back(slots[PayloadKind::gradient].size());
    }
    return counts;
  };
  // Of rank r of 1F1B 4 - r microbatches are in flight.
  const std::vector<std::size_t> of_1f1b = buffers("1f1b", 64);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_LE(of_1f1b[2 * rank], 4 - rank + 1) << rank;
    EXPECT_LE(of_1f1b[2 * rank + 1], 2U) << rank;
  }
  for (const char* name : {"1f1b", "zb-h1", "zbv", "dualpipe", "interleaved-1f1b"}) {
    EXPECT_EQ(buffers(name, 64), buffers(name, 128)) << name;
  }
}

}  // namespace
}  // namespace counterflow

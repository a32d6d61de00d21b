#include "scheduler/ir/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/passes/compile.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::family_problem;

Program compiled(const std::string& family, int p, int v, int m) {
  const Problem problem = family_problem(*find_family(family), p, v, m, {1, 1, 1, 0.1});
  return compile(problem, generate(*find_family(family), problem));
}

// A program in which every table has an entry, so that each can be changed.
Program full() {
  Program program = compiled("1f1b", 2, 1, 2);
  RankProgram& rank = program.ranks[0];
  rank.collectives.push_back({CollectiveKind::all_reduce, 0, kNone, 0, Bytes{8}});
  rank.accesses.push_back({0, 1, true});
  rank.slots.push_back({BufferPool::saved, Bytes{0}, Bytes{64}});
  return program;
}

TEST(ProgramHash, IsThatOfAnEqualProgram) {
  EXPECT_EQ(hash(full()), hash(full()));
  EXPECT_EQ(full(), full());
}

TEST(ProgramHash, DoesNotDependOnNames) {
  Program renamed = full();
  renamed.schedule = "another name";
  renamed.ranks[0].streams[0].label = "another label";
  EXPECT_EQ(hash(renamed), hash(full()));
}

using Change = std::pair<const char*, std::function<void(Program&)>>;

void expect_all_change_the_hash(const std::vector<Change>& changes) {
  std::set<std::uint64_t> seen = {hash(full())};
  for (const auto& [what, change] : changes) {
    Program changed = full();
    change(changed);
    EXPECT_TRUE(seen.insert(hash(changed)).second) << what;
  }
}

TEST(ProgramHash, ChangesWithKernelsAndInstructions) {
  expect_all_change_the_hash({
      {"version", [](Program& p) { ++p.version; }},
      {"stages", [](Program& p) { ++p.stages; }},
      {"microbatches", [](Program& p) { ++p.microbatches; }},
      {"kernel kind", [](Program& p) { p.kernels[0].kind = OpKind::recompute; }},
      {"paired kind", [](Program& p) { p.kernels[0].paired_kind = OpKind::backward; }},
      {"paired stage", [](Program& p) { p.kernels[0].paired_stage = 1; }},
      {"duration", [](Program& p) { p.kernels[0].duration += Time{1}; }},
      {"allocates", [](Program& p) { p.kernels[0].allocates += Bytes{1}; }},
      {"frees", [](Program& p) { p.kernels[0].frees += Bytes{1}; }},
      {"members", [](Program& p) { p.communicators[0].members = {1, 0}; }},
      {"thread blocks", [](Program& p) { p.communicators[0].max_thread_blocks = 4; }},
      {"communicator kind",
       [](Program& p) { p.communicators[0].kind = CommunicatorKind::control; }},
      {"ranks", [](Program& p) { p.ranks.emplace_back(); }},
      {"stream role", [](Program& p) { p.ranks[0].streams[0].role = StreamRole::host; }},
      {"stream priority", [](Program& p) { p.ranks[0].streams[0].priority = 1; }},
      {"instruction stream", [](Program& p) { p.ranks[0].instructions[1].stream = 7; }},
      {"instruction communicator", [](Program& p) { p.ranks[0].instructions[1].communicator = 7; }},
      {"instruction kernel", [](Program& p) { p.ranks[0].instructions[0].kernel = 7; }},
      {"op", [](Program& p) { p.ranks[0].instructions[0].op.microbatch = 7; }},
      {"paired", [](Program& p) { p.ranks[0].instructions[0].paired.stage = 7; }},
      {"records", [](Program& p) { p.ranks[0].instructions[0].records = 7; }},
      {"generation", [](Program& p) { p.ranks[0].instructions[0].generation = 7; }},
      {"waits of an instruction", [](Program& p) { p.ranks[0].instructions[0].waits.count = 7; }},
      {"body", [](Program& p) { p.ranks[0].instructions[0].body.first = 7; }},
      {"body count", [](Program& p) { p.ranks[0].instructions[0].body.count = 7; }},
      {"order",
       [](Program& p) { std::swap(p.ranks[0].instructions[0], p.ranks[0].instructions[1]); }},
  });
}

TEST(ProgramHash, ChangesWithEverySideTable) {
  expect_all_change_the_hash({
      {"waited event", [](Program& p) { p.ranks[0].waits[0].event = 7; }},
      {"waited generation", [](Program& p) { p.ranks[0].waits[0].generation = 7; }},
      {"direction", [](Program& p) { p.ranks[0].transfers[0].is_send ^= true; }},
      {"type", [](Program& p) { p.ranks[0].transfers[0].type = DataType::bf16; }},
      {"peer", [](Program& p) { p.ranks[0].transfers[0].peer = 7; }},
      {"sequence", [](Program& p) { p.ranks[0].transfers[0].sequence = 7; }},
      {"payload kind",
       [](Program& p) { p.ranks[0].transfers[0].payload.kind = PayloadKind::metadata; }},
      {"payload replica", [](Program& p) { p.ranks[0].transfers[0].payload.replica = 1; }},
      {"payload from", [](Program& p) { p.ranks[0].transfers[0].payload.from = 7; }},
      {"payload to", [](Program& p) { p.ranks[0].transfers[0].payload.to = 7; }},
      {"payload part", [](Program& p) { p.ranks[0].transfers[0].payload.part = 7; }},
      {"payload microbatch", [](Program& p) { p.ranks[0].transfers[0].payload.microbatch = 7; }},
      {"transfer slot", [](Program& p) { p.ranks[0].transfers[0].slot = 7; }},
      {"transfer version", [](Program& p) { p.ranks[0].transfers[0].version = 7; }},
      {"transfer size", [](Program& p) { p.ranks[0].transfers[0].size = Bytes{7}; }},
      {"collective kind",
       [](Program& p) { p.ranks[0].collectives[0].kind = CollectiveKind::barrier; }},
      {"collective size", [](Program& p) { p.ranks[0].collectives[0].size = Bytes{7}; }},
      {"access", [](Program& p) { p.ranks[0].accesses[0].is_write = false; }},
      {"buffer", [](Program& p) { p.ranks[0].slots[0].offset = Bytes{7}; }},
      {"events", [](Program& p) { ++p.ranks[0].events; }},
      {"static memory", [](Program& p) { p.ranks[0].static_memory = Bytes{7}; }},
  });
}

TEST(ProgramHash, TellsProgramsApart) {
  EXPECT_NE(hash(Program{}), hash(full()));
  EXPECT_NE(hash(compiled("1f1b", 2, 1, 2)), hash(compiled("gpipe", 2, 1, 2)));
}

TEST(Program, CountsAllRanksInstructions) {
  const Program program = compiled("1f1b", 2, 1, 3);
  // Each rank: 3 F and 3 B, and 3 transfers each way.
  EXPECT_EQ(program.ranks[0].instructions.size(), 12U);
  EXPECT_EQ(program.size(), 24U);
}

TEST(Program, TakesAtMost100BytesAnInstruction) {
  for (const auto& [family, p, v, m] : std::vector<std::tuple<const char*, int, int, int>>{
           {"1f1b", 8, 1, 128}, {"zbv", 8, 2, 128}, {"dualpipe", 8, 1, 128}}) {
    const Program program = compiled(family, p, v, m);
    // A fused pair is two.
    std::size_t instructions = program.size();
    for (const RankProgram& rank : program.ranks) {
      instructions += static_cast<std::size_t>(std::ranges::count_if(
          rank.instructions, [](const Instruction& i) { return i.paired.kind != OpKind::none; }));
    }
    EXPECT_LE(memory_use(program), 100 * instructions) << family;
    EXPECT_GE(memory_use(program), sizeof(Instruction) * program.size()) << family;
  }
}

TEST(Names, AreGivenToEveryEnumerator) {
  std::set<std::string_view> roles;
  for (int i = 0; i <= static_cast<int>(StreamRole::host); ++i) {
    roles.insert(name(static_cast<StreamRole>(i)));
  }
  EXPECT_EQ(roles.size(), 9U);
  EXPECT_FALSE(roles.contains(""));
  EXPECT_EQ(name(CommunicatorKind::gradients), "gradients");
  EXPECT_EQ(name(PayloadKind::activation), "activation");
  EXPECT_EQ(name(DataType::bf16), "bf16");
  EXPECT_EQ(name(CollectiveKind::reduce_scatter), "reduce_scatter");
  EXPECT_EQ(name(InstructionKind::step_end), "step_end");
}

}  // namespace
}  // namespace counterflow

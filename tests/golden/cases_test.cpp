#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "report/report.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "simulator/simulate.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

// Failures that users of other pipeline schedulers reported, as far as the core decides them. The
// rest are in figures_test.cpp and in the tests of the command line.
namespace counterflow {
namespace {

using testing::family_problem;
using testing::text;
using testing::uniform_problem;
using testing::units;

ScheduleFile public_file(const std::string& name) {
  std::ifstream file(TEST_DATA "/public/" + name);
  std::ostringstream content;
  content << file.rdbuf();
  return parse_schedule(content.str(), name);
}

Problem chain(PlacementKind kind, int p, int v, int m) {
  return uniform_problem(kind, p, v, m, units(1), units(1), units(1));
}

std::map<Semantics, bool> semantics_of(const Problem& problem, const Program& program) {
  std::map<Semantics, bool> result;
  for (const auto& [semantics, completes] : verify(problem, program).semantics) {
    result[semantics] = completes;
  }
  return result;
}

const std::map<Semantics, bool> kAlways = {
    {Semantics::buffered, true}, {Semantics::posted, true}, {Semantics::rendezvous, true}};
const std::map<Semantics, bool> kOnlyBuffered = {
    {Semantics::buffered, true}, {Semantics::posted, false}, {Semantics::rendezvous, false}};

std::string stuck_ops(const Problem& problem, const Program& program, Semantics semantics) {
  const ExecutionModel model{
      .name = "strict", .semantics = semantics, .independent_transfers = false};
  std::string ops;
  for (const Diagnostic& d : simulate(program, problem.links, model).diagnostics) {
    ops += to_string(d.op) + " ";
  }
  return ops;
}

// pytorch#172668: one cycle, of two sends that face each other; verify and simulator agree on it.
TEST(InterleavedFile, HangsAtTheSameTwoSendsInProofAndSimulation) {
  const Problem problem = chain(PlacementKind::loop, 2, 2, 4);
  const Program program = import(problem, public_file("interleaved_2rank_4mb_comms.csv"));
  EXPECT_EQ(semantics_of(problem, program), kOnlyBuffered);
  const ProgramVerdict verdict = verify(problem, program);
  ASSERT_EQ(verdict.diagnostics.size(), 2U);
  for (const Diagnostic& d : verdict.diagnostics) {
    EXPECT_NE(d.message.find("cycle rank0 0SEND_F1 <-> rank1 1SEND_F0:"), std::string::npos)
        << d.message;
  }
  EXPECT_EQ(stuck_ops(problem, program, Semantics::rendezvous), "0SEND_F1 1SEND_F0 ");
  EXPECT_EQ(stuck_ops(problem, program, Semantics::posted), "0SEND_F1 1SEND_F0 ");
  EXPECT_EQ(stuck_ops(problem, program, Semantics::buffered), "");
}

// The same compute, with its communication inferred, never hangs.
TEST(InterleavedFile, LoweredAnewNeverHangs) {
  const Problem problem = chain(PlacementKind::loop, 2, 2, 4);
  const Schedule schedule = public_file("interleaved_2rank_4mb_comms.csv").compute();
  const Program program = compile(problem, schedule);
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
  EXPECT_EQ(semantics_of(problem, program), kAlways);
}

// pytorch#172668, second snippet: the simulator stops where the proof says.
TEST(SwappedTails, StopAtASendOfEachRank) {
  const Problem problem = chain(PlacementKind::loop, 2, 2, 3);
  const Program program = import(problem, parse_schedule("0F2,0SEND_F2,2RECV_B0,2B0\n"
                                                         "3SEND_B0,1RECV_F2,1F2\n",
                                                         "tails.csv"));
  EXPECT_EQ(stuck_ops(problem, program, Semantics::rendezvous), "0SEND_F2 3SEND_B0 ");
  EXPECT_EQ(stuck_ops(problem, program, Semantics::posted), "0SEND_F2 3SEND_B0 ");
}

TEST(SwappedTails, AreToldThatParityProvesNothing) {
  const Problem problem = chain(PlacementKind::loop, 2, 2, 3);
  const Program program = import(problem, parse_schedule("2SEND_F1,0F2,0SEND_F2,2RECV_B0,2B0\n"
                                                         "3RECV_F1,3SEND_B0,3F1,3B1,1RECV_F2,"
                                                         "3SEND_B1\n",
                                                         "tails.csv"));
  std::string deadlocks;
  for (const Diagnostic& d : verify_communication(problem, program).diagnostics) {
    if (d.rule == "deadlock") deadlocks += d.message + "\n";
  }
  const std::string cycle =
      " semantics: cycle rank0 0SEND_F2 <-> rank1 3SEND_B0: rank0 0SEND_F2 holds up rank0 "
      "2RECV_B0; "
      "rank0 2RECV_B0 is the other end of rank1 3SEND_B0; rank1 3SEND_B0 holds up rank1 3F1; "
      "rank1 3F1 holds up rank1 3B1; rank1 3B1 holds up rank1 1RECV_F2; rank1 1RECV_F2 is the "
      "other "
      "end of rank0 0SEND_F2; swapping sends and receives on odd ranks "
      "alone is no proof against it, one order of all transfers is: verify --repair\n";
  EXPECT_EQ(deadlocks, "under posted" + cycle + "under rendezvous" + cycle);
}

// PiPPy#969: 0 -> 1 -> 2 and a skip link 0 -> 2.
class SkipLink : public ::testing::Test {
 protected:
  explicit SkipLink(std::vector<StageGraph::Edge> edges = {{0, 1}, {0, 2}, {1, 2}}) {
    problem_.graph = StageGraph(3, std::move(edges));
    problem_.forward_only = true;
  }
  [[nodiscard]] Program read(const std::string& rows) const {
    return import(problem_, parse_schedule(rows, "skip.csv"));
  }

  Problem problem_ = chain(PlacementKind::loop, 3, 1, 3);
};

const std::string kBatchedSends =
    "0F0,[0SEND_F0>1;0SEND_F0>2],0F1,[0SEND_F1>1;0SEND_F1>2],0F2,[0SEND_F2>1;0SEND_F2>2]\n";
// Two microbatches ahead of what it passes on.
const std::string kReceivesAhead =
    "1RECV_F0,1RECV_F1,1RECV_F2,1F0,1SEND_F0,1F1,1SEND_F1,1F2,1SEND_F2\n";

// A group ends as a whole: rank 2 waits for rank 1, which waits for the next batch of rank 0, which
// waits for the next batch of rank 2.
TEST_F(SkipLink, HangsInAGroupCycleWhereBothInputsAreOneBatch) {
  const Program program = read(kBatchedSends + kReceivesAhead +
                               "[2RECV_F0<0;2RECV_F0<1],2F0,[2RECV_F1<0;2RECV_F1<1],2F1,"
                               "[2RECV_F2<0;2RECV_F2<1],2F2\n");
  EXPECT_EQ(
      semantics_of(problem_, program),
      (std::map<Semantics, bool>{
          {Semantics::buffered, true}, {Semantics::posted, true}, {Semantics::rendezvous, false}}));
  const ProgramVerdict verdict = verify(problem_, program);
  ASSERT_EQ(verdict.diagnostics.size(), 1U);
  EXPECT_TRUE(verdict.diagnostics[0].message.starts_with(
      "under rendezvous semantics: cycle rank0 [0SEND_F1;0SEND_F1>2] <-> rank1 1RECV_F2 <-> rank2 "
      "[2RECV_F0<0;2RECV_F0]: "))
      << verdict.diagnostics[0].message;
}

TEST_F(SkipLink, CompletesWhereInputsAreSplitBySource) {
  const Program program = read(kBatchedSends + kReceivesAhead +
                               "2RECV_F0<0,2RECV_F1<0,2RECV_F0<1,2F0,2RECV_F2<0,2RECV_F1<1,2F1,"
                               "2RECV_F2<1,2F2\n");
  EXPECT_EQ(text(verify(problem_, program).diagnostics), "");
  EXPECT_EQ(semantics_of(problem_, program), kAlways);
}

class SkipLinkDeclaredFirst : public SkipLink {
 protected:
  SkipLinkDeclaredFirst() : SkipLink({{0, 1}, {1, 2}, {0, 2}}) {}
};

// The stages that each input of 2F0 comes from, in the order in which it waits for them.
std::vector<int> sources_of_inputs(const Program& program) {
  std::vector<int> sources;
  const RankProgram& rank = program.ranks[2];
  for (const Instruction& i : rank.instructions) {
    if (i.op != Op{OpKind::forward, 0, 2, 0}) continue;
    for (const EventWait& wait : rank.waits_of(i)) {
      for (const Instruction& other : rank.instructions) {
        if (other.records == wait.event) {
          sources.push_back(rank.transfers_of(other).front().payload.from);
        }
      }
    }
  }
  return sources;
}

TEST_F(SkipLink, LowersWithItsInputsInDeclaredOrder) {
  const Program program = compile(problem_, parse_schedule("0F0,0F1,0F2\n1F0,1F1,1F2\n"
                                                           "2F0,2F1,2F2\n",
                                                           "order.csv")
                                                .compute());
  EXPECT_EQ(text(verify(problem_, program).diagnostics), "");
  EXPECT_EQ(semantics_of(problem_, program), kAlways);
  EXPECT_EQ(sources_of_inputs(program), (std::vector{0, 1}));
  // As text, every transfer says where it comes from or goes to, and reads back the same.
  const Program back = read(to_csv(program));
  EXPECT_EQ(text(verify(problem_, back).diagnostics), "");
  EXPECT_EQ(to_csv(back), to_csv(program));
}

TEST_F(SkipLinkDeclaredFirst, LowersWithItsInputsInDeclaredOrder) {
  const Program program = compile(
      problem_, parse_schedule("0F0,0F1,0F2\n1F0,1F1,1F2\n2F0,2F1,2F2\n", "order.csv").compute());
  EXPECT_EQ(sources_of_inputs(program), (std::vector{1, 0}));
}

// Megatron-Bridge#6025: only the last rank goes into evaluation.
TEST(EvaluationOnOneRank, IsTold) {
  Problem problem = chain(PlacementKind::loop, 2, 1, 1);
  problem.forward_only = true;
  const Program program = import(problem, parse_schedule("\n1RECV_F0,1F0\n", "eval.csv"));
  EXPECT_EQ(text(verify(problem, program).diagnostics),
            "complete rank 0 0F0: is missing\n"
            "matching rank 0 0SEND_F0: is missing: rank 1 1RECV_F0 has no sender\n");
}

// nccl#479: two ranks that exchange messages.
class Exchange {
 public:
  // The steady state of two ranks: an activation one way, a gradient the other.
  static std::map<Semantics, bool> of(const std::string& rank0, const std::string& rank1) {
    const Problem problem = chain(PlacementKind::loop, 2, 1, 2);
    const Program program =
        import(problem,
               parse_schedule("0F0,0SEND_F0,0F1," + rank0 + ",0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0," +
                                  rank1 + ",1F1,1B1,1SEND_B1\n",
                              "exchange.csv"));
    return semantics_of(problem, program);
  }
};

TEST(TwoRanksExchange, HangWhereBothSendFirst) {
  EXPECT_EQ(Exchange::of("0SEND_F1,0RECV_B0", "1SEND_B0,1RECV_F1"), kOnlyBuffered);
}
TEST(TwoRanksExchange, PassWhereOneReceivesFirst) {
  EXPECT_EQ(Exchange::of("0SEND_F1,0RECV_B0", "1RECV_F1,1SEND_B0"), kAlways);
}
TEST(TwoRanksExchange, PassInGroups) {
  EXPECT_EQ(Exchange::of("[0SEND_F1;0RECV_B0]", "[1SEND_B0;1RECV_F1]"), kAlways);
}

// torchtitan#774: on the V placement the hand-off at the turn stays inside a rank.
TEST(VPlacement, TurnsInsideItsLastRank) {
  const Problem problem = chain(PlacementKind::v, 4, 2, 8);
  const Program program = compile(problem, generate(*find_family("zbv"), problem));
  for (const RankProgram& rank : program.ranks) {
    for (const Transfer& transfer : rank.transfers) {
      EXPECT_NE(std::minmax(transfer.payload.from, transfer.payload.to),
                (std::minmax<std::uint16_t>(3, 4)));
    }
  }
  EXPECT_EQ(semantics_of(problem, program), kAlways);
}

// pytorch PR#130378, PR#131762: orders of compute that PyTorch wrote, lowered.
void expect_lowers(const Problem& problem, const std::string& file, std::size_t messages) {
  const Program program = compile(problem, public_file(file).compute());
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
  EXPECT_EQ(semantics_of(problem, program), kAlways);
  std::size_t sends = 0;
  std::size_t receives = 0;
  for (const RankProgram& rank : program.ranks) {
    for (const Transfer& transfer : rank.transfers) ++(transfer.is_send ? sends : receives);
  }
  EXPECT_EQ(sends, messages);
  EXPECT_EQ(receives, messages);
  for (const Semantics semantics : kAllSemantics) {
    EXPECT_EQ(stuck_ops(problem, program, semantics), "");
  }
}

TEST(PyTorchFiles, LowerToOneMessageAnEdge) {
  // 4 stages, 3 edges, 8 microbatches, both ways.
  expect_lowers(chain(PlacementKind::loop, 2, 2, 8), "zb1p_2rank_2stagep_compute.csv", 3 * 8 * 2);
  // 8 stages, 7 edges of which 3 -> 4 stays on rank 3, 10 microbatches, both ways.
  expect_lowers(chain(PlacementKind::v, 4, 2, 10), "dualpipev_4rank_10mb.csv", 6 * 10 * 2);
}

// pytorch PR#129597: counts that p does not divide, the two that PyTorch refuses among them.
TEST(AnyMicrobatchCount, CompilesAndRunsInterleaved) {
  for (const int m : {3, 5, 6, 7, 8, 9, 10, 11}) {
    SCOPED_TRACE(m);
    const Problem problem = family_problem(*find_family("interleaved-1f1b"), 4, 2, m);
    const Schedule schedule = generate(*find_family("interleaved-1f1b"), problem);
    EXPECT_EQ(text(verify(problem, schedule)), "");
    const Program program = compile(problem, schedule);
    EXPECT_EQ(semantics_of(problem, program), kAlways);
  }
}

// NeMo#14288: fewer microbatches than ranks.
TEST(FewMicrobatches, CompileAndNeverHang) {
  for (const auto& [name, p, v, m] :
       std::vector<std::tuple<const char*, int, int, int>>{{"interleaved-1f1b", 6, 2, 3},
                                                           {"1f1b", 6, 1, 3},
                                                           {"1f1b", 8, 1, 1},
                                                           {"gpipe", 4, 1, 2}}) {
    SCOPED_TRACE(name);
    const Problem problem = family_problem(*find_family(name), p, v, m);
    const Program program = compile(problem, generate(*find_family(name), problem));
    EXPECT_EQ(semantics_of(problem, program), kAlways);
    for (const Semantics semantics : kAllSemantics) {
      EXPECT_EQ(stuck_ops(problem, program, semantics), "");
    }
  }
}

// deepspeed#2800, DualPipe#23: the report's peaks, measured on the timeline.
std::vector<std::int64_t> measured_peaks(const Problem& problem, const Schedule& schedule) {
  const Program program = compile(problem, schedule);
  const Simulation run = simulate(program, problem.links, ExecutionModel::ideal());
  std::vector<std::int64_t> peaks;
  for (const RankReport& rank : measure(program, run.timeline).per_rank) {
    peaks.push_back(rank.peak_activations);
  }
  return peaks;
}

TEST(PeakActivations, HaveNoBufferTooMany) {
  const Problem one = chain(PlacementKind::loop, 4, 1, 8);
  EXPECT_EQ(measured_peaks(one, generate(*find_family("1f1b"), one)),
            (std::vector<std::int64_t>{4, 3, 2, 1}));
  const Problem v = chain(PlacementKind::v, 4, 2, 10);
  EXPECT_EQ(measured_peaks(v, public_file("dualpipev_4rank_10mb.csv").compute()),
            (std::vector<std::int64_t>{9, 9, 9, 9}));
  const Problem both = chain(PlacementKind::bidirectional, 8, 1, 20);
  EXPECT_EQ(measured_peaks(both, generate(*find_family("dualpipe"), both)),
            (std::vector<std::int64_t>(8, 9)));
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

// One minimal rejection for each rule, with its exact diagnostic.
namespace counterflow {
namespace {

using testing::op;
using testing::order;
using testing::set_pair_cost;
using testing::text;
using testing::uniform_problem;

Problem chain(int p, int m, PlacementKind placement = PlacementKind::loop, int v = 1) {
  return uniform_problem(placement, p, v, m, Time{10}, Time{8}, Time{5});
}

std::string faults(const Problem& problem, const std::string& rows) {
  return text(verify(problem, order(rows)));
}

// ---- range, rank
// ----------------------------------------------------------------------------------

TEST(RangeRule, OneRowARank) {
  EXPECT_EQ(faults(chain(2, 1), "0F0,0B0\n"),
            "range: the schedule has 1 rows, one a rank; the problem has 2 ranks\n");
}

TEST(RangeRule, StagesOfTheProblem) {
  EXPECT_EQ(faults(chain(1, 1), "0F0,0B0,1F0\n"),
            "range rank 0 [2] 1F0: there is no stage 1; the problem has stages 0..0\n");
}

TEST(RangeRule, MicrobatchesOfTheProblem) {
  EXPECT_EQ(faults(chain(1, 2), "0F0,0F2\n"),
            "range rank 0 [1] 0F2: there is no microbatch 2; the problem has 0..1\n");
}

TEST(RangeRule, NegativeMicrobatch) {
  const Schedule schedule{"negative", {{{{OpKind::forward, 0, 0, -1}, {}}}}};
  const Diagnostics found = verify(chain(1, 2), schedule);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].message, "there is no microbatch -1; the problem has 0..1");
  EXPECT_EQ(found[0].rule, "range");
}

TEST(RangeRule, ReplicasOfThePlacement) {
  EXPECT_EQ(faults(chain(1, 1), "~0F0\n"),
            "range rank 0 [0] ~0F0: there is no second replica; only the bidirectional placement "
            "has one\n");
}

TEST(RangeRule, ReplicaOfTheMicrobatch) {
  EXPECT_EQ(faults(chain(2, 2, PlacementKind::bidirectional), "0F1\n~0F1\n"),
            "range rank 0 [0] 0F1: microbatch 1 flows through replica 1, not 0\n");
}

TEST(RankRule, StageOfAnotherRank) {
  EXPECT_EQ(faults(chain(2, 1), "0F0,0B0\n1F0,0F0,1B0\n"),
            "rank rank 1 [1] 0F0: stage 0 expected on rank 0, given rank 1\n");
}

TEST(RankRule, SecondPartOfAPair) {
  EXPECT_EQ(faults(chain(2, 1), "(0F0;1B0)OVERLAP_F_B\n1F0\n"),
            "rank rank 0 [0] 1B0: stage 1 expected on rank 1, given rank 0\n");
}

TEST(RangeRule, StagesNamedAtTheOtherEndOfTransfers) {
  const std::string file =
      "0F0,0SEND_F0>7,[0RECV_B0;0RECV_B0<9],0B0\n1RECV_F0<0,1F0,1B0,1SEND_B0>1\n";
  EXPECT_EQ(text(verify(chain(2, 1), parse_schedule(file, "file.csv"))),
            "range rank 0 [1] 0SEND_F0: names stage 7 at its other end; the problem has stages "
            "0..1\n"
            "range rank 0 [2] 0RECV_B0: names stage 9 at its other end; the problem has stages "
            "0..1\n");
}

TEST(RangeRule, TransfersAndGroupsOfAFile) {
  const ScheduleFile file =
      parse_schedule("0F0,0SEND_F0,[0RECV_B0;0RECV_B7]\n0RECV_F0,1UNSHARD\n", "file.csv");
  EXPECT_EQ(text(verify(chain(2, 1), file)),
            "range rank 0 [2] 0RECV_B7: there is no microbatch 7; the problem has 0..0\n"
            "rank rank 1 [0] 0RECV_F0: stage 0 expected on rank 0, given rank 1\n");
}

// ---- complete
// -------------------------------------------------------------------------------------

TEST(CompleteRule, MissingForward) {
  EXPECT_EQ(faults(chain(1, 2), "0F0,0B0\n"),
            "complete rank 0 0F1: is missing\n"
            "complete rank 0 0B1: is missing, and so are its parts I and W\n");
}

TEST(CompleteRule, MissingPart) {
  EXPECT_EQ(faults(chain(1, 1), "0F0,0I0\n"), "complete rank 0 0W0: is missing\n");
}

TEST(CompleteRule, Twice) {
  EXPECT_EQ(faults(chain(1, 1), "0F0,0F0,0B0\n"),
            "complete rank 0 [1] 0F0: stands in the schedule more than once\n");
}

TEST(CompleteRule, FullBackwardBesideItsParts) {
  // No file can hold this: its letters would be refused.
  const Schedule both{"both",
                      {{{op("0F0"), {}}, {op("0B0"), {}}, {op("0I0"), {}}, {op("0W0"), {}}}}};
  EXPECT_EQ(text(verify(chain(1, 1), both)),
            "complete rank 0 0B0: is there beside I or W, which are its parts\n");
}

TEST(CompleteRule, BackwardOfAForwardOnlySchedule) {
  Problem problem = chain(1, 1);
  problem.forward_only = true;
  EXPECT_EQ(faults(problem, "0F0,0B0\n"),
            "complete rank 0 [1] 0B0: a forward-only schedule has no backward\n");
}

TEST(CompleteRule, GradientThatReachesNobody) {
  Problem problem = chain(2, 1);
  problem.frozen = {1, 0};
  EXPECT_EQ(faults(problem, "0F0,0I0\n1F0,1B0\n"),
            "complete rank 0 [1] 0I0: no gradient reaches stage 0: it and all before it are "
            "frozen\n");
}

TEST(CompleteRule, WeightGradientOfAFrozenStage) {
  Problem problem = chain(2, 1);
  problem.frozen = {0, 1};
  const std::string why = "stage 1 is frozen and has no weight gradient; its backward is 1I0\n";
  EXPECT_EQ(faults(problem, "0F0,0B0\n1F0,1I0,1W0\n"), "complete rank 1 [2] 1W0: " + why);
  EXPECT_EQ(faults(problem, "0F0,0B0\n1F0,1B0\n"),
            "complete rank 1 [1] 1B0: " + why + "complete rank 1 1I0: is missing\n");
}

TEST(CompleteRule, OpsThatAreNotScheduled) {
  const Schedule schedule{"unshard",
                          {{{op("0F0"), {}}, {{OpKind::unshard, 0, 0, 0}, {}}, {op("0B0"), {}}}}};
  const Diagnostics found = verify(chain(1, 1), schedule);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rule, "complete");
  EXPECT_EQ(found[0].message, "only F, B, I, W, RECOMPUTE, OFFLOAD and RELOAD can be scheduled");
}

Problem keeping(KeepingKind kind) {
  return with_keeping(chain(1, 1),
                      {{.kind = kind, .store = Time{2}, .restore = Time{3}, .kept = Bytes{0}}});
}

TEST(CompleteRule, MovesOfAStageThatKeepsItsActivations) {
  EXPECT_EQ(faults(chain(1, 1), "0F0,0RECOMPUTE0,0B0\n"),
            "complete rank 0 [1] 0RECOMPUTE0: stage 0 keeps its activations; give stages.recompute "
            "to let it do otherwise\n");
  EXPECT_EQ(faults(keeping(KeepingKind::offload), "0F0,0OFFLOAD0,0RELOAD0,0RECOMPUTE0,0B0\n"),
            "complete rank 0 [3] 0RECOMPUTE0: stage 0 brings its activations back by RELOAD\n");
}

TEST(CompleteRule, MissingMoves) {
  EXPECT_EQ(faults(keeping(KeepingKind::recompute), "0F0,0RECOMPUTE0,0B0\n"), "");
  EXPECT_EQ(faults(keeping(KeepingKind::offload), "0F0,0OFFLOAD0,0RELOAD0,0B0\n"), "");
  EXPECT_EQ(faults(keeping(KeepingKind::recompute), "0F0,0B0\n"),
            "complete rank 0 0RECOMPUTE0: is missing\n"
            "order rank 0 [1] 0B0: comes before 0RECOMPUTE0, which it needs\n");
  EXPECT_EQ(faults(keeping(KeepingKind::offload), "0F0,0OFFLOAD0,0B0\n"),
            "complete rank 0 0RELOAD0: is missing\n"
            "order rank 0 [2] 0B0: comes before 0RELOAD0, which it needs\n");
}

TEST(OrderRule, MovesOutOfOrder) {
  EXPECT_EQ(faults(keeping(KeepingKind::recompute), "0RECOMPUTE0,0F0,0B0\n"),
            "order rank 0 [0] 0RECOMPUTE0: comes before 0F0, which it needs\n");
  EXPECT_EQ(faults(keeping(KeepingKind::offload), "0F0,0RELOAD0,0OFFLOAD0,0B0\n"),
            "order rank 0 [1] 0RELOAD0: comes before 0OFFLOAD0, which it needs\n");
}

// ---- order, deadlock of a schedule
// ----------------------------------------------------------------

TEST(OrderRule, BackwardBeforeForward) {
  EXPECT_EQ(faults(chain(1, 1), "0B0,0F0\n"),
            "order rank 0 [0] 0B0: comes before 0F0, which it needs\n");
}

TEST(OrderRule, WeightBeforeInputGradient) {
  EXPECT_EQ(faults(chain(1, 1), "0F0,0W0,0I0\n"),
            "order rank 0 [1] 0W0: comes before 0I0, which it needs\n");
}

TEST(OrderRule, PairOfOneMicrobatch) {
  EXPECT_EQ(faults(chain(1, 1), "(0F0;0B0)OVERLAP_F_B\n"),
            "order rank 0 [0] 0B0: comes before 0F0, which it needs\n");
}

TEST(DeadlockRule, CycleOfAnOrder) {
  EXPECT_EQ(
      faults(chain(2, 2), "0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n"),
      "deadlock rank 0 [1] 0B0: the order is a cycle: rank0 0B0 stands before, on its rank, rank0 "
      "0F1; "
      "rank0 0F1 makes the input of rank1 1F1; rank1 1F1 stands before, on its rank, rank1 1F0; "
      "rank1 "
      "1F0 makes the activations for rank1 1B0; rank1 1B0 makes the gradient for rank0 0B0\n");
}

// ---- memory
// ---------------------------------------------------------------------------------------

TEST(MemoryRule, Bytes) {
  Problem problem = chain(1, 2);
  problem.memory = {StageMemory{Bytes{100}, Bytes{30}}};
  problem.limits.bytes = {Bytes{250}};
  EXPECT_EQ(faults(problem, "0F0,0F1,0B0,0B1\n"), "");
  problem.limits.static_memory = {Bytes{51}};
  EXPECT_EQ(faults(problem, "0F0,0F1,0B0,0B1\n"),
            "memory rank 0 [1] 0F1: rank 0 needs 251 B in this order (51 B of it static), its "
            "limit is 250 B; raise memory.limit or take a schedule that holds less\n");
}

TEST(MemoryRule, SplitBackwardFreesInParts) {
  Problem problem = chain(1, 2);
  problem.memory = {StageMemory{Bytes{100}, Bytes{30}}};
  problem.limits.bytes = {Bytes{130}};
  EXPECT_EQ(faults(problem, "0F0,0I0,0F1,0W0,0I1,0W1\n"), "");
  problem.limits.bytes = {Bytes{129}};
  EXPECT_EQ(faults(problem, "0F0,0I0,0F1,0W0,0I1,0W1\n"),
            "memory rank 0 [2] 0F1: rank 0 needs 130 B in this order (0 B of it static), its "
            "limit is 129 B; raise memory.limit or take a schedule that holds less\n");
}

TEST(MemoryRule, Activations) {
  Problem problem = chain(1, 2);
  problem.limits.activations = {1};
  EXPECT_EQ(faults(problem, "0F0,0B0,0F1,0B1\n"), "");
  EXPECT_EQ(faults(problem, "0F0,0I0,0F1,0W0,0I1,0W1\n"),
            "memory rank 0 [2] 0F1: rank 0 holds 2 activations in this order, its limit is 1; "
            "raise memory.limit_activations or take a schedule that holds less\n");
}

TEST(MemoryRule, APairHoldsBoth) {
  Problem problem = chain(1, 2);
  set_pair_cost(problem, Time{15});
  problem.limits.activations = {1};
  EXPECT_EQ(faults(problem, "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"),
            "memory rank 0 [1] 0F1: rank 0 holds 2 activations in this order, its limit is 1; "
            "raise memory.limit_activations or take a schedule that holds less\n");
}

TEST(MemoryRule, OfEachRankApart) {
  Problem problem = chain(2, 2);
  problem.limits.activations = {2, 1};
  EXPECT_EQ(faults(problem, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"), "");
  problem.limits.activations = {1, 1};
  EXPECT_EQ(faults(problem, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"),
            "memory rank 0 [1] 0F1: rank 0 holds 2 activations in this order, its limit is 1; "
            "raise memory.limit_activations or take a schedule that holds less\n");
}

// ---- Programs: matching, order, deadlock
// ----------------------------------------------------------

ProgramVerdict verdict_of(const Problem& problem, const std::string& rows,
                          std::span<const Semantics> asked = kAllSemantics) {
  return verify(problem, import(problem, parse_schedule(rows, "file.csv")), asked);
}

constexpr Semantics kBuffered[] = {Semantics::buffered};

Problem two_forwards() {
  Problem problem = chain(2, 2);
  problem.forward_only = true;
  return problem;
}

TEST(MatchingRule, NoSender) {
  EXPECT_EQ(
      text(verdict_of(two_forwards(), "0F0,0SEND_F0,0F1\n1RECV_F0,1F0,1RECV_F1,1F1\n", kBuffered)
               .diagnostics),
      "matching rank 0 0SEND_F1: is missing: rank 1 1RECV_F1 has no sender\n");
}

TEST(MatchingRule, NoReceiver) {
  EXPECT_EQ(
      text(verdict_of(two_forwards(), "0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F0,1F0,1F1\n", kBuffered)
               .diagnostics),
      "matching rank 1 1RECV_F1: is missing: rank 0 0SEND_F1 has no receiver\n");
}

TEST(MatchingRule, NeitherEnd) {
  EXPECT_EQ(text(verdict_of(two_forwards(), "0F0,0SEND_F0,0F1\n1RECV_F0,1F0,1F1\n").diagnostics),
            "matching rank 0 0SEND_F1: is missing, and so is 1RECV_F1 on rank 1\n"
            "matching rank 1 1RECV_F1: is missing, and so is 0SEND_F1 on rank 0\n");
}

TEST(MatchingRule, Twice) {
  EXPECT_EQ(
      text(verdict_of(two_forwards(),
                      "0F0,0SEND_F0,0F1,0SEND_F1,0SEND_F1\n1RECV_F0,1F0,1RECV_F1,1F1\n", kBuffered)
               .diagnostics),
      "matching rank 0 [4] 0SEND_F1: stands in the program more than once\n");
}

TEST(MatchingRule, NothingToSendAfterTheLastStage) {
  EXPECT_EQ(text(verdict_of(two_forwards(),
                            "0F0,0SEND_F0,0F1,0SEND_F1\n"
                            "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1\n",
                            kBuffered)
                     .diagnostics),
            "matching rank 1 [2] 1SEND_F0: stage 1 has no activation to exchange with another "
            "stage here\n");
}

TEST(MatchingRule, NothingIsSentInsideARank) {
  Problem problem = chain(1, 1, PlacementKind::loop, 2);
  problem.forward_only = true;
  EXPECT_EQ(text(verdict_of(problem, "0F0,0SEND_F0,1RECV_F0,1F0\n", kBuffered).diagnostics),
            "matching rank 0 [1] 0SEND_F0: stages 0 and 1 share rank 0; nothing is sent between "
            "them\n"
            "matching rank 0 [2] 1RECV_F0: stages 0 and 1 share rank 0; nothing is sent between "
            "them\n");
}

TEST(MatchingRule, MessagesThatSwapOnTheWay) {
  EXPECT_EQ(
      text(verdict_of(two_forwards(), "0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F1,1RECV_F0,1F0,1F1\n")
               .diagnostics),
      "payload rank 0 [1] 0SEND_F0: sends the activation of microbatch 0 from stage 0 to "
      "stage 1, but the receive it meets on rank 1 expects the activation of microbatch 1 "
      "from stage 0 to stage 1\n"
      "payload rank 0 [3] 0SEND_F1: sends the activation of microbatch 1 from stage 0 to "
      "stage 1, but the receive it meets on rank 1 expects the activation of microbatch 0 "
      "from stage 0 to stage 1\n");
}

TEST(MatchingRule, Sizes) {
  const Problem problem = two_forwards();
  Program program = compile(problem, order("0F0,0F1\n1F0,1F1\n"));
  program.ranks[1].transfers[1].size = Bytes{9};
  program.ranks[1].transfers[0].type = DataType::bf16;
  EXPECT_EQ(text(verify(problem, program).diagnostics),
            "payload rank 0 [1] 0SEND_F0: sends 0 B as bytes, but rank 1 expects 0 B as bf16\n"
            "payload rank 0 [3] 0SEND_F1: sends 0 B as bytes, but rank 1 expects 9 B as bytes\n");
}

TEST(OrderRule, AReceiveBehindTheComputeThatNeedsIt) {
  EXPECT_EQ(
      text(verdict_of(two_forwards(), "0F0,0SEND_F0,0F1,0SEND_F1\n1F0,1RECV_F0,1RECV_F1,1F1\n", {})
               .diagnostics),
      "order rank 1 [0] 1F0: comes before 1RECV_F0, which it needs\n");
}

TEST(OrderRule, ASendBeforeWhatItSends) {
  EXPECT_EQ(
      text(verdict_of(two_forwards(), "0SEND_F0,0F0,0F1,0SEND_F1\n1RECV_F0,1F0,1RECV_F1,1F1\n", {})
               .diagnostics),
      "order rank 0 [0] 0SEND_F0: comes before 0F0, which it needs\n");
}

// No end of a transfer is waited for: a rank that holds itself up needs no other to do so.
TEST(DeadlockRule, ARankThatHoldsItselfUp) {
  EXPECT_EQ(
      text(verdict_of(two_forwards(), "0SEND_F0,0F0,0F1,0SEND_F1\n1RECV_F0,1F0,1RECV_F1,1F1\n",
                      std::vector{Semantics::buffered})
               .diagnostics),
      "order rank 0 [0] 0SEND_F0: comes before 0F0, which it needs\n"
      "deadlock rank 0 [0] 0SEND_F0: under buffered semantics: cycle rank0 0SEND_F0 <-> rank0 0F0: "
      "rank0 0SEND_F0 holds up rank0 0F0; rank0 0F0 makes what is needed by rank0 0SEND_F0; a "
      "transfer of the rank stands at a wrong place: verify --repair\n");
}

TEST(OrderRule, AnEventThatIsNeverRecorded) {
  const Problem problem = two_forwards();
  Program program = compile(problem, order("0F0,0F1\n1F0,1F1\n"));
  for (Instruction& instruction : program.ranks[1].instructions) instruction.records = kNone;
  EXPECT_EQ(text(verify(problem, program).diagnostics),
            "order rank 1 [1] 1F0: waits for an event that is never recorded\n"
            "order rank 1 [2] 1RECV_F1: waits for an event that is never recorded\n"
            "order rank 1 [3] 1F1: waits for an event that is never recorded\n");
}

constexpr const char* kCrossingSends =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";

TEST(DeadlockRule, CycleOfAProgramUnderEachOfTheSemanticsAskedFor) {
  const std::string cycle =
      " semantics: cycle rank0 0SEND_F1 <-> rank1 1SEND_B0: rank0 0SEND_F1 holds up rank0 "
      "0RECV_B0; rank0 0RECV_B0 is the other end of rank1 1SEND_B0; rank1 1SEND_B0 holds up rank1 "
      "1RECV_F1; rank1 1RECV_F1 is the other end of rank0 0SEND_F1; swapping sends and receives on "
      "odd ranks alone is no proof against it, one order of all transfers is: verify --repair\n";
  const ProgramVerdict all = verdict_of(chain(2, 2), kCrossingSends);
  EXPECT_EQ(text(all.diagnostics), "deadlock rank 0 [3] 0SEND_F1: under posted" + cycle +
                                       "deadlock rank 0 [3] 0SEND_F1: under rendezvous" + cycle);
  ASSERT_EQ(all.semantics.size(), 3U);
  EXPECT_TRUE(all.semantics[0].completes);
  EXPECT_FALSE(all.semantics[1].completes);
  EXPECT_FALSE(all.semantics[2].completes);
  // What was not asked for is known all the same, but no fault.
  const ProgramVerdict buffered = verdict_of(chain(2, 2), kCrossingSends, kBuffered);
  EXPECT_EQ(text(buffered.diagnostics), "");
  EXPECT_FALSE(buffered.semantics[2].completes);
}

}  // namespace
}  // namespace counterflow

#include "scheduler/ir/schedule_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace counterflow {
namespace {

std::string public_file(const std::string& name) {
  std::ifstream in(std::string(TEST_DATA) + "/public/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

ScheduleFile parse(std::string_view text) {
  return parse_schedule(text, "test.csv");
}

Op op(OpKind kind, int stage, int microbatch, int replica = 0) {
  return {kind, static_cast<std::uint8_t>(replica), static_cast<std::uint16_t>(stage), microbatch};
}

// The only op of a file of one cell.
Op only_op(std::string_view cell) {
  const ScheduleFile file = parse(cell);
  EXPECT_EQ(file.rows.size(), 1U);
  EXPECT_EQ(file.rows.at(0).size(), 1U);
  return file.rows.at(0).at(0).op;
}

TEST(ScheduleText, EveryKindReadsBackAsItself) {
  for (int i = 1; i <= static_cast<int>(kLastOpKind); ++i) {
    const auto kind = static_cast<OpKind>(i);
    const int microbatch = has_microbatch(kind) ? 7 : 0;
    for (const int replica : {0, 1}) {
      const Op expected = op(kind, 12, microbatch, replica);
      EXPECT_EQ(only_op(to_string(expected)), expected) << to_string(expected);
    }
  }
}

TEST(ScheduleText, IsTheGrammarOfPyTorch) {
  EXPECT_EQ(to_string(op(OpKind::forward, 0, 3)), "0F3");
  EXPECT_EQ(to_string(op(OpKind::backward, 2, 1, 1)), "~2B1");
  EXPECT_EQ(to_string(op(OpKind::backward_input, 5, 0)), "5I0");
  EXPECT_EQ(to_string(op(OpKind::backward_weight, 5, 0)), "5W0");
  EXPECT_EQ(to_string(op(OpKind::send_forward, 1, 2)), "1SEND_F2");
  EXPECT_EQ(to_string(op(OpKind::receive_backward, 1, 2)), "1RECV_B2");
  EXPECT_EQ(to_string(op(OpKind::unshard, 0, 0)), "0UNSHARD");
  EXPECT_EQ(to_string(op(OpKind::reduce_gradients, 9, 0)), "9REDUCE_GRAD");
  EXPECT_EQ(to_string(Slot{op(OpKind::forward, 0, 7), op(OpKind::backward, 7, 3)}),
            "(0F7;7B3)OVERLAP_F_B");
  EXPECT_EQ(to_string(Slot{op(OpKind::forward, 0, 7), {}}), "0F7");
}

TEST(ScheduleText, AppendsToWhatIsThere) {
  std::string out = "x,";
  append_text(out, op(OpKind::forward, 0, 3));
  EXPECT_EQ(out, "x,0F3");
}

TEST(ScheduleFile, PairMayCrossReplicas) {
  const ScheduleFile file = parse("( 1F4 ; ~6B2 )OVERLAP_F_B");
  const Action& action = file.rows.at(0).at(0);
  EXPECT_EQ(action.form, Action::Form::pair);
  EXPECT_EQ(action.op, op(OpKind::forward, 1, 4));
  EXPECT_EQ(action.paired, op(OpKind::backward, 6, 2, 1));
  EXPECT_FALSE(file.has_communication);
}

TEST(ScheduleFile, GroupKeepsItsOrder) {
  const ScheduleFile file = parse("[0SEND_F1; 0RECV_B0],[~3RECV_F2]");
  ASSERT_EQ(file.rows.at(0).size(), 2U);
  const Action& action = file.rows[0][0];
  EXPECT_EQ(action.form, Action::Form::group);
  EXPECT_EQ(action.group,
            (std::vector<Op>{op(OpKind::send_forward, 0, 1), op(OpKind::receive_backward, 0, 0)}));
  EXPECT_EQ(file.rows[0][1].group, (std::vector<Op>{op(OpKind::receive_forward, 3, 2, 1)}));
  EXPECT_TRUE(file.has_communication);
}

TEST(ScheduleFile, SkipsEmptyCellsAndToleratesSpacesQuotesAndByteOrderMark) {
  const ScheduleFile file = parse("\xEF\xBB\xBF,, 0F0\t,\"\",\"0F1\" ,\" 0B0\",,\r\n \"1F0\"");
  ASSERT_EQ(file.rows.size(), 2U);
  EXPECT_EQ(to_csv(file.compute()), "0F0,0F1,0B0\n1F0\n");
}

TEST(ScheduleFile, LineEndsMayBeEitherAndTheLastMayLack) {
  const std::string expected = "0F0,0F1\n1F0\n";
  for (const char* text : {"0F0,0F1\n1F0", "0F0,0F1\n1F0\n", "0F0,0F1\r\n1F0\r\n", "0F0,0F1\r\n1F0",
                           "0F0,0F1\n1F0\n\n", "0F0,0F1\r\n1F0\r\n \r\n\t"}) {
    EXPECT_EQ(to_csv(parse(text).compute()), expected) << text;
  }
}

TEST(ScheduleFile, BlankLineBetweenOthersIsARankWithoutActions) {
  const ScheduleFile file = parse("\n0F0\n\n  \n1F0\n");
  ASSERT_EQ(file.rows.size(), 5U);
  EXPECT_TRUE(file.rows[0].empty());
  EXPECT_TRUE(file.rows[2].empty());
  EXPECT_TRUE(file.rows[3].empty());
  EXPECT_EQ(file.rows[4].size(), 1U);
}

TEST(ScheduleFile, EmptyCellMakesALastRankWithoutActions) {
  EXPECT_EQ(parse("0F0\n\"\"\n").rows.size(), 2U);
  EXPECT_EQ(parse("0F0\n,\n\n").rows.size(), 2U);
}

TEST(ScheduleFile, IdleRanksSurviveARoundTrip) {
  Schedule schedule;
  schedule.ranks = {{}, {{op(OpKind::forward, 0, 0), {}}}, {}};
  const ScheduleFile file = parse(to_csv(schedule));
  EXPECT_EQ(file.compute().ranks, schedule.ranks);
}

TEST(ScheduleFile, NumbersReachTheirLimitsAndMayHaveLeadingZeros) {
  EXPECT_EQ(only_op("65534F999999"), op(OpKind::forward, 65534, 999999));
  EXPECT_EQ(only_op("0000000000000001F00000000000000002"), op(OpKind::forward, 1, 2));
}

TEST(ScheduleFile, ComputeLeavesOutTransfersAndStageActions) {
  const ScheduleFile file = parse(
      "0UNSHARD,0F0,0SEND_F0,[0SEND_F1;0RECV_B0],0RECOMPUTE0,0OFFLOAD1,0RELOAD1,0B0,0REDUCE_GRAD");
  EXPECT_EQ(to_csv(file.compute()), "0F0,0RECOMPUTE0,0OFFLOAD1,0RELOAD1,0B0\n");
  EXPECT_EQ(file.compute().name, "test.csv");
}

TEST(ScheduleFile, StageActionsAreNoCommunication) {
  EXPECT_FALSE(parse("0UNSHARD,0F0,0RESHARD").has_communication);
  EXPECT_TRUE(parse("0F0\n1RECV_F0").has_communication);
}

TEST(BackwardLetters, BesideWIsTheInputGradientElseFull) {
  EXPECT_EQ(to_csv(parse("0F0,0B0,0F1,0B1,0W0").compute()), "0F0,0I0,0F1,0B1,0W0\n");
  EXPECT_EQ(to_csv(parse("0F0,0BW0,0F1,0B1,0W1").compute()), "0F0,0B0,0F1,0I1,0W1\n");
  EXPECT_EQ(to_csv(parse("0I0,0W0,0B1").compute()), "0I0,0W0,0B1\n");
}

TEST(BackwardLetters, AreResolvedForEachStageAndReplica) {
  EXPECT_EQ(to_csv(parse("0B0,1B0,1W0\n~0B0,~0W0\n").compute()), "0B0,1I0,1W0\n~0I0,~0W0\n");
}

TEST(BackwardLetters, CountInsidePairsToo) {
  const ScheduleFile file = parse("(0F1;1B0)OVERLAP_F_B,(0F2;1B1)OVERLAP_F_B,1W1");
  EXPECT_EQ(file.rows[0][0].paired.kind, OpKind::backward);
  EXPECT_EQ(file.rows[0][1].paired.kind, OpKind::backward_input);
}

TEST(BackwardLetters, WeightMayStandBeforeOrOnAnotherRank) {
  EXPECT_EQ(to_csv(parse("0W0,0B0").compute()), "0W0,0I0\n");
  EXPECT_EQ(to_csv(parse("0B0\n0W0").compute()), "0I0\n0W0\n");
}

// One Schedule however the file spells it.
TEST(PublicFiles, OlderLettersMeanTheSameOrder) {
  const Schedule compute =
      parse_schedule(public_file("zb1p_2rank_2stagep_compute.csv"), "compute.csv").compute();
  const ScheduleFile comms =
      parse_schedule(public_file("zb1p_2rank_2stagep_comms.csv"), "comms.csv");
  EXPECT_TRUE(comms.has_communication);
  int fused = 0;
  std::string merged;  // the compute file with adjacent I, W of one microbatch as one B
  for (const auto& order : compute.ranks) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      Slot slot = order[i];
      EXPECT_NE(slot.first.kind, OpKind::backward) << to_string(slot);
      if (i + 1 < order.size() && slot.first.kind == OpKind::backward_input &&
          order[i + 1].first ==
              op(OpKind::backward_weight, slot.first.stage, slot.first.microbatch)) {
        slot.first.kind = OpKind::backward;
        ++fused, ++i;
      }
      merged += to_string(slot) + ",";
    }
    merged.back() = '\n';
  }
  EXPECT_GT(fused, 0);
  EXPECT_EQ(to_csv(comms.compute()), merged);
}

TEST(PublicFiles, ComputeFilesOfToday) {
  for (const char* name : {"dualpipev_4rank_10mb.csv", "split_8rank_10mb.csv"}) {
    const std::string text = public_file(name);
    EXPECT_EQ(to_csv(parse_schedule(text, name).compute()), text) << name;
  }
}

TEST(PublicFiles, InterleavedWithCommunication) {
  const ScheduleFile file =
      parse_schedule(public_file("interleaved_2rank_4mb_comms.csv"), "interleaved.csv");
  EXPECT_TRUE(file.has_communication);
  EXPECT_EQ(to_csv(file.compute()),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
}

// ---- Programs -----------------------------------------------------------------------------------

Instruction run(Op what, Op paired = {}) {
  Instruction i;
  i.op = what;
  i.paired = paired;
  return i;
}

Instruction of_kind(InstructionKind kind, Op what = {}) {
  Instruction i;
  i.kind = kind;
  i.op = what;
  return i;
}

Transfer transfer(bool is_send, Payload payload) {
  Transfer t;
  t.is_send = is_send;
  t.payload = payload;
  return t;
}

// Appends one instruction that issues these transfers as one group.
void issue(RankProgram& rank, std::vector<Transfer> transfers) {
  Instruction i;
  i.kind = InstructionKind::transfer;
  i.body = {static_cast<std::uint32_t>(rank.transfers.size()),
            static_cast<std::uint32_t>(transfers.size())};
  rank.transfers.insert(rank.transfers.end(), transfers.begin(), transfers.end());
  rank.instructions.push_back(i);
}

constexpr Payload kActivation{PayloadKind::activation, 0, 1, 2, 0, 5};
constexpr Payload kGradient{PayloadKind::gradient, 1, 2, 1, 0, 4};

TEST(ProgramCsv, NamesBothEndsOfAMessageByTheStageAtThatEnd) {
  Program program;
  RankProgram& rank = program.ranks.emplace_back();
  issue(rank, {transfer(true, kActivation)});
  issue(rank, {transfer(false, kActivation)});
  issue(rank, {transfer(true, kGradient)});
  issue(rank, {transfer(false, kGradient)});
  EXPECT_EQ(to_csv(program), "1SEND_F5,2RECV_F5,~2SEND_B4,~1RECV_B4\n");
}

TEST(ProgramCsv, BracketsGroupsOfSeveral) {
  Program program;
  RankProgram& rank = program.ranks.emplace_back();
  issue(rank, {transfer(true, kActivation), transfer(false, kGradient)});
  EXPECT_EQ(to_csv(program), "[1SEND_F5;~1RECV_B4]\n");
}

TEST(ProgramCsv, NamesAMessageInPartsOnceAndNoMetadata) {
  Payload part = kActivation;
  part.part = 1;
  Payload metadata = kActivation;
  metadata.kind = PayloadKind::metadata;
  Program program;
  RankProgram& rank = program.ranks.emplace_back();
  issue(rank, {transfer(true, metadata)});
  issue(rank, {transfer(true, kActivation), transfer(true, part)});
  EXPECT_EQ(to_csv(program), "1SEND_F5\n");
}

TEST(ProgramCsv, HoldsComputeAndStageActionsInIssueOrderAndLeavesOutTheRest) {
  Program program;
  RankProgram& rank = program.ranks.emplace_back();
  rank.instructions = {of_kind(InstructionKind::collective, op(OpKind::unshard, 0, 0)),
                       run(op(OpKind::forward, 0, 0)),
                       of_kind(InstructionKind::collective),
                       of_kind(InstructionKind::collective, op(OpKind::forward, 0, 0)),
                       run(op(OpKind::forward, 0, 1), op(OpKind::backward, 1, 0)),
                       of_kind(InstructionKind::collective, op(OpKind::reduce_gradients, 0, 0)),
                       of_kind(InstructionKind::step_end)};
  program.ranks.emplace_back();
  EXPECT_EQ(to_csv(program), "0UNSHARD,0F0,(0F1;1B0)OVERLAP_F_B,0REDUCE_GRAD\n\"\"\n");
  EXPECT_EQ(parse(to_csv(program)).rows.size(), 2U);
}

TEST(ScheduleFileText, ReadsBackWithGroupsPairsReplicasAndIdleRanks) {
  const std::string text =
      "0UNSHARD,0F0,[0SEND_F0;~0RECV_F1],(0F1;~1B0)OVERLAP_F_B,[0SEND_F1]\n\"\"\n";
  EXPECT_EQ(to_csv(parse_schedule(text, "order.csv")), text);
}

TEST(OtherEnds, AreReadAndWrittenBack) {
  const std::string rows = "0F0,0SEND_F0>2,[0SEND_F1>1;0SEND_F1;~2RECV_B0<4]\n";
  const ScheduleFile file = parse_schedule(rows, "file.csv");
  EXPECT_TRUE(file.rows[0][0].others.empty());
  EXPECT_EQ(file.rows[0][1].others, (std::vector<Stage>{2}));
  EXPECT_EQ(file.rows[0][2].others, (std::vector<Stage>{1, kAnyStage, 4}));
  EXPECT_EQ(to_csv(file), rows);
}

TEST(OtherEnds, AreNamedInProgramsWhereAStageHasSeveral) {
  Program program;
  program.ranks.resize(1);
  RankProgram& rank = program.ranks[0];
  const auto receive = [&](std::uint16_t from, std::uint16_t to) {
    Transfer transfer;
    transfer.payload.from = from;
    transfer.payload.to = to;
    Instruction i{.kind = InstructionKind::transfer};
    i.body = {static_cast<std::uint32_t>(rank.transfers.size()), 1};
    rank.transfers.push_back(transfer);
    rank.instructions.push_back(i);
  };
  receive(1, 2);
  receive(0, 2);
  receive(4, 5);
  receive(3, 6);
  EXPECT_EQ(to_csv(program), "2RECV_F0<1,2RECV_F0<0,5RECV_F0,6RECV_F0<3\n");
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "scheduler/error.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

// The message a text is refused with, or "accepted".
std::string refusal(std::string_view text) {
  try {
    (void)parse_schedule(text, "a.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

struct Refused {
  const char* name;
  const char* text;
  const char* message;
  friend std::ostream& operator<<(std::ostream& out, const Refused& r) { return out << r.name; }
};

class ScheduleFileErrors : public testing::TestWithParam<Refused> {};

TEST_P(ScheduleFileErrors, SayWhereWhatAndWhatToDo) {
  EXPECT_EQ(refusal(GetParam().text), GetParam().message);
}

#define UNKNOWN_ACTION                                                                          \
  "; after the stage stands F, B, I, W, BW, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD, " \
  "REDUCE_GRAD, RECOMPUTE, OFFLOAD or RELOAD"
#define ASK_ARROW                                                                                 \
  "a stage at the other end is named of transfers alone: a send goes > to it, a receive comes < " \
  "from it; write for example 0SEND_F3>2 or 2RECV_F3<0"
#define ASK_STAGE "an action begins with its stage number; write for example 0F3"
#define ONE_DIALECT "; write I and W for a backward in two parts, or B alone for a full one"

constexpr Refused kRefused[] = {
    {"empty", "", "a.csv: the file holds no rank; write one row of actions a rank"},
    {"blank", "\n \r\n\n", "a.csv: the file holds no rank; write one row of actions a rank"},
    {"header_row", "rank,step 0\n", "a.csv:1:1: \"rank\": " ASK_STAGE},
    {"no_stage", "0F0\n1F0,F3", "a.csv:2:2: \"F3\": " ASK_STAGE},
    {"minus", "-1F0", "a.csv:1:1: \"-1F0\": " ASK_STAGE},
    {"plus", "+1F0", "a.csv:1:1: \"+1F0\": " ASK_STAGE},
    {"two_tildes", "~~1F0", "a.csv:1:1: \"~~1F0\": " ASK_STAGE},
    {"tilde_alone", "~", "a.csv:1:1: \"~\": " ASK_STAGE},
    {"counts_empty_cells", "0F0,,,x", "a.csv:1:4: \"x\": " ASK_STAGE},
    {"not_text", "\xff\xfe\x30\n", "a.csv:1:1: \"\\xff\\xfe0\": " ASK_STAGE},
    {"lone_carriage_return", "0F0\r1F0\n",
     "a.csv:1:1: \"0F0\\x0d1F0\": \"\\x0d1F0\" follows the action \"0F0\"; separate actions by "
     "commas"},
    {"unknown_kind", "0G3", "a.csv:1:1: \"0G3\": unknown action \"G\"" UNKNOWN_ACTION},
    {"unknown_word", "0SEND_X3",
     "a.csv:1:1: \"0SEND_X3\": unknown action \"SEND_X\"" UNKNOWN_ACTION},
    {"lower_case", "0f3", "a.csv:1:1: \"0f3\": unknown action \"f\"" UNKNOWN_ACTION},
    {"number_alone", "12", "a.csv:1:1: \"12\": unknown action \"\"" UNKNOWN_ACTION},
    {"fraction", "0.5F1", "a.csv:1:1: \"0.5F1\": unknown action \".\"" UNKNOWN_ACTION},
    {"hexadecimal", "0x1F1", "a.csv:1:1: \"0x1F1\": unknown action \"x\"" UNKNOWN_ACTION},
    {"overlap_as_word", "0OVERLAP_F_B1",
     "a.csv:1:1: \"0OVERLAP_F_B1\": unknown action \"OVERLAP_F_B\"" UNKNOWN_ACTION},
    {"no_microbatch", "3F",
     "a.csv:1:1: \"3F\": F needs a microbatch number; write for example 3F0"},
    {"no_microbatch_bw", "3BW",
     "a.csv:1:1: \"3BW\": BW needs a microbatch number; write for example 3BW0"},
    {"negative_microbatch", "3SEND_F-1",
     "a.csv:1:1: \"3SEND_F-1\": SEND_F needs a microbatch number; write for example 3SEND_F0"},
    {"microbatch_of_stage_action", "2UNSHARD1",
     "a.csv:1:1: \"2UNSHARD1\": UNSHARD concerns the whole stage, nothing may follow it; write "
     "2UNSHARD"},
    {"junk_after_stage_action", "~2RESHARD x",
     "a.csv:1:1: \"~2RESHARD x\": RESHARD concerns the whole stage, nothing may follow it; write "
     "~2RESHARD"},
    {"junk", "0F3x",
     "a.csv:1:1: \"0F3x\": \"x\" follows the action \"0F3\"; separate actions by commas"},
    {"no_comma", "0F3 0F4",
     "a.csv:1:1: \"0F3 0F4\": \" 0F4\" follows the action \"0F3\"; separate actions by commas"},
    {"semicolon", "0F3;0F4",
     "a.csv:1:1: \"0F3;0F4\": \";0F4\" follows the action \"0F3\"; separate actions by commas"},
    {"stage_limit", "65535F0",
     "a.csv:1:1: \"65535F0\": stage 65535 is too large; the largest is 65534"},
    {"microbatch_limit", "0F1000000",
     "a.csv:1:1: \"0F1000000\": microbatch 1000000 is too large; the largest is 999999"},
    {"stage_overflow", "4294967296F0",
     "a.csv:1:1: \"4294967296F0\": stage 4294967296 is too large; the largest is 65534"},
    {"microbatch_overflow", "0F18446744073709551616",
     "a.csv:1:1: \"0F18446744073709551616\": microbatch 18446744073709551616 is too large; the "
     "largest is 999999"},
    {"quote_open", "\"0F0",
     "a.csv:1:1: \"\"0F0\": a quoted cell holds one action between two "
     "quotes; leave the quotes out"},
    {"quote_alone", "\"",
     "a.csv:1:1: \"\"\": a quoted cell holds one action between two quotes; "
     "leave the quotes out"},
    {"quote_with_comma", "\"0F0,0F1\"",
     "a.csv:1:1: \"\"0F0\": a quoted cell holds one action between two quotes; leave the quotes "
     "out"},
    {"quote_then_junk", "\"0F0\"x",
     "a.csv:1:1: \"\"0F0\"x\": a quoted cell holds one action between two quotes; leave the quotes "
     "out"},
    {"pair_unnamed", "(0F7;7B3)",
     "a.csv:1:1: \"(0F7;7B3)\": a pair ends in )OVERLAP_F_B; write for example "
     "(0F7;7B3)OVERLAP_F_B"},
    {"pair_open", "(0F7;7B3",
     "a.csv:1:1: \"(0F7;7B3\": a pair ends in )OVERLAP_F_B; write for example "
     "(0F7;7B3)OVERLAP_F_B"},
    {"pair_misnamed", "(0F7;7B3)OVERLAP_F_B2",
     "a.csv:1:1: \"(0F7;7B3)OVERLAP_F_B2\": a pair ends in )OVERLAP_F_B; write for example "
     "(0F7;7B3)OVERLAP_F_B"},
    {"pair_of_one", "(0F7)OVERLAP_F_B",
     "a.csv:1:1: \"(0F7)OVERLAP_F_B\": a pair holds two ops, a forward and a backward; write for "
     "example (0F7;7B3)OVERLAP_F_B"},
    {"pair_of_three", "(0F7;7B3;7W3)OVERLAP_F_B",
     "a.csv:1:1: \"(0F7;7B3;7W3)OVERLAP_F_B\": a pair holds two ops, a forward and a backward; "
     "write for example (0F7;7B3)OVERLAP_F_B"},
    {"pair_backward_first", "(7B3;0F7)OVERLAP_F_B",
     "a.csv:1:1: \"(7B3;0F7)OVERLAP_F_B\": a pair is a forward F, then a backward B or I; write "
     "for "
     "example (0F7;7B3)OVERLAP_F_B"},
    {"pair_with_weight_gradient", "(0F7;7W3)OVERLAP_F_B",
     "a.csv:1:1: \"(0F7;7W3)OVERLAP_F_B\": a pair is a forward F, then a backward B or I; write "
     "for "
     "example (0F7;7B3)OVERLAP_F_B"},
    {"pair_member_empty", "0F0,(0F7;)OVERLAP_F_B", "a.csv:1:2: \"\": " ASK_STAGE},
    {"pair_member_bad", "0F0,(0F;7B3)OVERLAP_F_B",
     "a.csv:1:2: \"0F\": F needs a microbatch number; write for example 0F0"},
    {"pair_nested", "((0F7;7B3)OVERLAP_F_B;7B3)OVERLAP_F_B",
     "a.csv:1:1: \"((0F7;7B3)OVERLAP_F_B;7B3)OVERLAP_F_B\": a pair ends in )OVERLAP_F_B; write for "
     "example (0F7;7B3)OVERLAP_F_B"},
    {"group_open", "[0SEND_F1;0RECV_B0",
     "a.csv:1:1: \"[0SEND_F1;0RECV_B0\": a group ends in its only ]; write for example "
     "[0SEND_F1;0RECV_B0]"},
    {"group_then_junk", "[0SEND_F1]x",
     "a.csv:1:1: \"[0SEND_F1]x\": a group ends in its only ]; write for example "
     "[0SEND_F1;0RECV_B0]"},
    {"group_over_cells", "[0SEND_F1,0RECV_B0]",
     "a.csv:1:1: \"[0SEND_F1\": a group ends in its only ]; write for example "
     "[0SEND_F1;0RECV_B0]"},
    {"group_empty", "[]", "a.csv:1:1: \"\": " ASK_STAGE},
    {"group_member_empty", "[0SEND_F1;]", "a.csv:1:1: \"\": " ASK_STAGE},
    {"group_with_compute", "[0SEND_F1;0F2]",
     "a.csv:1:1: \"0F2\": a group holds transfers alone: SEND_F, RECV_F, SEND_B, RECV_B; give "
     "other "
     "actions cells of their own"},
    {"group_nested", "[[0SEND_F1];0SEND_F2]",
     "a.csv:1:1: \"[[0SEND_F1];0SEND_F2]\": a group ends in its only ]; write for example "
     "[0SEND_F1;0RECV_B0]"},
    {"other_end_of_a_compute", "0F1>2", "a.csv:1:1: \"0F1>2\": " ASK_ARROW},
    {"other_end_wrong_way", "0F0,0SEND_F1<2", "a.csv:1:2: \"0SEND_F1<2\": " ASK_ARROW},
    {"other_end_missing", "[0SEND_F1>;0RECV_B0]",
     "a.csv:1:1: \"0SEND_F1>\": one stage number ends the action after < or >; write for example "
     "0SEND_F3>2"},
    {"other_end_then_junk", "0RECV_B1<2x",
     "a.csv:1:1: \"0RECV_B1<2x\": one stage number ends the action after < or >; write for "
     "example 0SEND_F3>2"},
    {"bw_and_w", "0F0,2BW5,0F1\n2W5",
     "a.csv:2:1: \"2W5\" and, in line 1 cell 2, \"2BW5\" mix two dialects for one microbatch: BW "
     "holds the weight gradient already" ONE_DIALECT},
    {"w_before_bw", "2W5,,2BW5",
     "a.csv:1:3: \"2BW5\" and, in line 1 cell 1, \"2W5\" mix two dialects for one microbatch: BW "
     "holds the weight gradient already" ONE_DIALECT},
    {"b_and_bw", "2B5,2BW5",
     "a.csv:1:2: \"2BW5\" and, in line 1 cell 1, \"2B5\" mix two dialects for one microbatch: "
     "beside BW, B is the input gradient" ONE_DIALECT},
    {"b_i_and_w", "~2B5,~2I5,~2W5",
     "a.csv:1:2: \"~2I5\" and, in line 1 cell 1, \"~2B5\" mix two dialects for one microbatch: "
     "beside W, both B and I are the input gradient" ONE_DIALECT},
    {"dialects_in_a_pair", "(0F9;2BW5)OVERLAP_F_B,2W5",
     "a.csv:1:2: \"2W5\" and, in line 1 cell 1, \"2BW5\" mix two dialects for one microbatch: BW "
     "holds the weight gradient already" ONE_DIALECT},
};

INSTANTIATE_TEST_SUITE_P(All, ScheduleFileErrors, testing::ValuesIn(kRefused),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ScheduleFileRefusals, ShortenLongCells) {
  EXPECT_EQ(refusal(std::string(100000, 'x')),
            "a.csv:1:1: \"" + std::string(40, 'x') + "...\": " ASK_STAGE);
  EXPECT_EQ(refusal(std::string(100, '9') + "F0"), "a.csv:1:1: \"" + std::string(40, '9') +
                                                       "...\": stage " + std::string(40, '9') +
                                                       "... is too large; the largest is 65534");
}

TEST(ScheduleFileRefusals, LimitTheRows) {
  EXPECT_EQ(refusal(std::string(65535, '\n') + "0F0"),
            "a.csv:65536: more than 65535 rows; one row is one rank");
  EXPECT_EQ(refusal(std::string(65534, '\n') + "0F0"), "accepted");
}

TEST(ScheduleFileRefusals, NulBytesAreJunk) {
  EXPECT_EQ(refusal(std::string_view("0F0\0,0F1", 8)),
            "a.csv:1:1: \"0F0\\x00\": \"\\x00\" follows the action \"0F0\"; separate actions by "
            "commas");
}

TEST(ScheduleFileRefusals, DialectsMayDifferBetweenMicrobatches) {
  EXPECT_EQ(refusal("0B0,0W0,0BW1,0B2,0I3,0W3,1BW0"), "accepted");
}

}  // namespace
}  // namespace counterflow

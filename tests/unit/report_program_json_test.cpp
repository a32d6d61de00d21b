#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "report/program_json.h"
#include "scheduler/error.h"
#include "tests/support/cases.h"
#include "tests/unit/report_runs.h"

namespace counterflow {
namespace {

using nlohmann::json;

// A program with something in every table.
Program rich_program() {
  testing::HandMade run = testing::two_ranks();
  run.pair(0, testing::f(0, 1), testing::b(1, 0, 1), 100, 200);
  run.collective(0, testing::op_of(OpKind::reduce_gradients, 1, 0), 200, 300).step_end(0, 300);
  RankProgram& rank = run.at(0);
  rank.static_memory = Bytes{1LL << 35U};
  rank.slots = {{BufferPool::saved, Bytes{0}, Bytes{4096}},
                {BufferPool::gradients, Bytes{4096}, Bytes{8192}}};
  rank.accesses = {{0, 3, true}, {1, 2, false}, {kNone, 0, false}};
  rank.instructions[0].body = {0, 2};
  rank.transfers[0].slot = 1;
  rank.transfers[0].version = 9;
  rank.transfers[0].type = DataType::fp8;
  rank.transfers[0].payload.kind = PayloadKind::metadata;
  rank.transfers[0].payload.part = 4;
  rank.streams[2].priority = -3;
  rank.streams[1].label = "two <words> \"quoted\"";
  run.program().communicators.push_back({CommunicatorKind::control, {1, 0}, 24});
  return run.program();
}

std::string refusal(const std::string& text) {
  try {
    (void)parse_program_json(text, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ProgramJson, ReadsBackExactly) {
  const Program program = rich_program();
  const std::string text = program_json(program);
  EXPECT_EQ(parse_program_json(text), program);
  EXPECT_EQ(program_json(parse_program_json(text)), text);
}

TEST(ProgramJson, NamesItsColumns) {
  const json document = json::parse(program_json(rich_program()));
  for (const auto& [table, columns] : document["columns"].items()) {
    const int rank = table == "waits" ? 1 : 0;
    const json& rows = document.contains(table) ? document[table] : document["ranks"][rank][table];
    ASSERT_FALSE(rows.empty()) << table;
    EXPECT_EQ(rows[0].size(), columns.size()) << table;
  }
  EXPECT_EQ(document["hash"].get<std::string>().size(), 16U);
}

struct Fault {
  const char* name;
  std::function<void(json&)> make;
  const char* said;
};

class ProgramJsonFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(ProgramJsonFaults, IsRefusedWithItsPlace) {
  json document = json::parse(program_json(rich_program()));
  GetParam().make(document);
  const std::string message = refusal(document.dump());
  EXPECT_NE(message.find(GetParam().said), std::string::npos) << message;
}

json& instruction(json& d, int column) {
  return d["ranks"][0]["instructions"][0][column];
}

INSTANTIATE_TEST_SUITE_P(
    Every, ProgramJsonFaults,
    ::testing::Values(
        Fault{"missing_key", [](json& d) { d.erase("kernels"); }, "the key \"kernels\" is missing"},
        Fault{"other_version", [](json& d) { d["version"] = 2; }, "version: "},
        Fault{"other_schema", [](json& d) { d["schema_version"] = 9; }, "schema_version: "},
        Fault{"wrong_hash", [](json& d) { d["hash"] = "0123456789abcdef"; }, "hash: "},
        Fault{"changed_contents", [](json& d) { d["kernels"][0][6] = 77; }, "hash: "},
        Fault{"no_object", [](json& d) { d = json::array(); }, "expected an object"},
        Fault{"ranks_no_array", [](json& d) { d["ranks"] = 3; }, "ranks: expected an array"},
        Fault{"short_row", [](json& d) { d["kernels"][1].erase(0); },
              "kernels[1]: expected an array of 9 values"},
        Fault{"text_for_number", [](json& d) { instruction(d, 1) = "0"; },
              "ranks[0].instructions[0][1]: expected a whole number"},
        Fault{"fraction", [](json& d) { instruction(d, 7) = 0.5; },
              "ranks[0].instructions[0][7]: expected a whole number"},
        Fault{"stream_outside", [](json& d) { instruction(d, 1) = 3; },
              "ranks[0].instructions[0][1]: expected a whole number from 0 to 2, found 3"},
        Fault{"kernel_outside", [](json& d) { instruction(d, 3) = 1000; }, "[0][3]: "},
        Fault{"communicator_outside", [](json& d) { instruction(d, 2) = 2; }, "[0][2]: "},
        Fault{"event_outside", [](json& d) { instruction(d, 6) = 50; }, "[0][6]: "},
        Fault{"waits_outside", [](json& d) { instruction(d, 9) = 5; }, "[0][9]: "},
        Fault{"accesses_outside", [](json& d) { instruction(d, 11) = 4; }, "[0][11]: "},
        Fault{"unknown_kind", [](json& d) { instruction(d, 0) = "jump"; },
              "'jump' is none of run, transfer, collective or step_end"},
        Fault{"no_op", [](json& d) { instruction(d, 4) = "0Q3"; }, "'0Q3' is no op"},
        Fault{"op_with_rest", [](json& d) { instruction(d, 4) = "0F3x"; }, "is no op"},
        Fault{"stage_outside", [](json& d) { instruction(d, 4) = "2F0"; },
              "stage 2 is outside 0..1"},
        Fault{"microbatch_outside", [](json& d) { instruction(d, 4) = "0F2"; },
              "microbatch 2 is outside 0..1"},
        Fault{"huge_number", [](json& d) { instruction(d, 4) = "0F99999999999999999999"; },
              "is no op"},
        Fault{"beyond_int64", [](json& d) { d["kernels"][0][6] = 18446744073709551615ULL; },
              "kernels[0][6]: "},
        Fault{"events_without_end", [](json& d) { d["ranks"][0]["events"] = 4000000000LL; },
              "ranks[0].events: "},
        Fault{"peer_outside", [](json& d) { d["ranks"][0]["transfers"][0][2] = 2; },
              "ranks[0].transfers[0][2]: "},
        Fault{"slot_outside", [](json& d) { d["ranks"][0]["transfers"][0][10] = 2; },
              "ranks[0].transfers[0][10]: "},
        Fault{"member_outside", [](json& d) { d["communicators"][0]["members"][0] = 7; },
              "communicators[0].members[0]: "},
        Fault{"unknown_role", [](json& d) { d["ranks"][1]["streams"][0]["role"] = "gpu"; },
              "ranks[1].streams[0].role: 'gpu' is none of compute"},
        Fault{"run_without_kernel", [](json& d) { instruction(d, 3) = -1; },
              "[0][3]: a run needs a kernel"},
        Fault{"transfer_without_communicator",
              [](json& d) { d["ranks"][0]["instructions"][1][2] = -1; },
              "[1][2]: it needs a communicator"},
        Fault{"transfer_of_nothing", [](json& d) { d["ranks"][0]["instructions"][1][11] = 0; },
              "[1][11]: there is nothing to exchange"},
        Fault{"transfer_issued_twice", [](json& d) { d["ranks"][0]["instructions"][3][10] = 0; },
              "[3]: transfer 0 belongs to an earlier instruction"},
        Fault{"endless_kernel", [](json& d) { d["kernels"][0][6] = 5'000'000'000'000'000'000; },
              "kernels: the numbers add up to more than 2^62"},
        Fault{"negative_duration", [](json& d) { d["kernels"][0][6] = -1; }, "kernels[0][6]: "}),
    [](const auto& fault) { return std::string(fault.param.name); });

TEST(ProgramJson, ATruncatedFileIsRefusedWithItsLine) {
  const std::string text = program_json(rich_program());
  const std::string message = refusal(text.substr(0, text.size() / 2));
  EXPECT_EQ(message.find("p.json:"), 0U) << message;
  EXPECT_NE(message.find("not JSON"), std::string::npos) << message;
}

// Whatever byte is hurt: refused, or read as what it then says; never anything worse.
TEST(ProgramJson, SurvivesEveryHurtByte) {
  const std::string text = program_json(rich_program());
  constexpr std::size_t kEvery = testing::kSanitized ? 29 : 3;
  for (std::size_t at = 0; at < text.size(); at += kEvery) {
    for (const char c : {'0', '"', '[', '-'}) {
      std::string hurt = text;
      hurt[at] = c;
      (void)refusal(hurt);
    }
  }
  EXPECT_EQ(parse_program_json(text), rich_program());
}

}  // namespace
}  // namespace counterflow

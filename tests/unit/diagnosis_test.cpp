#include "report/diagnosis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/flight_record.h"
#include "executor/virtual_streams.h"
#include "scheduler/error.h"
#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tests/support/problems.h"
#include "tests/support/programs.h"
#include "tests/unit/allocations.h"

namespace counterflow {
namespace {

using testing::find;
using testing::one_forward_one_backward;

// An entry as PyTorch writes it.
struct Posted {
  std::string what;  // "nccl:send 0->1"
  std::int64_t sequence;
  bool completed = true;
  std::int64_t elements = 8;
  std::string type = "Float";
};

// A dump of one process group of ranks 0 to size - 1, as JSON. Times follow record ids.
std::string dump_text(int size, const std::vector<Posted>& posted, Rank rank = 0,
                      int first_record = 0) {
  std::string ranks;
  for (int r = 0; r < size; ++r) ranks += fmt::format("{}{}", r == 0 ? "" : ", ", r);
  nlohmann::json entries = nlohmann::json::array();
  int record = first_record;
  for (const Posted& each : posted) {
    const bool p2p = each.what.find('-') != std::string::npos;
    entries.push_back({{"record_id", record},
                       {"process_group", {"0", "default_pg"}},
                       {"collective_seq_id", each.sequence},
                       {"p2p_seq_id", each.sequence},
                       {"profiling_name", each.what},
                       {"time_created_ns", 1000 * record + rank},
                       {"input_sizes", {{each.elements, 2}}},
                       {"input_dtypes", {each.type}},
                       {"output_sizes", {{each.elements, 2}}},
                       {"output_dtypes", {each.type}},
                       {"state", each.completed ? "completed" : "scheduled"},
                       {"is_p2p", p2p}});
    ++record;
  }
  const nlohmann::json dump = {
      {"version", "2.10"},
      {"pg_config", {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[" + ranks + "]"}}}}},
      {"entries", entries}};
  return dump.dump();
}

FlightDump dump_of(Rank rank, int size, const std::vector<Posted>& posted, int first_record = 0) {
  return parse_flight_dump(dump_text(size, posted, rank, first_record),
                           fmt::format("rank_{}", rank), rank);
}

Finding verdict_of(const std::vector<FlightDump>& dumps, const Program* program = nullptr) {
  const Diagnosis diagnosis = diagnose(dumps, program);
  EXPECT_NE(diagnosis.verdict(), nullptr);
  return diagnosis.verdict() == nullptr ? Finding{} : *diagnosis.verdict();
}

// What a run that stopped leaves, read back.
std::vector<FlightDump> records_of(const Program& program, const exec::RunResult& result) {
  const Matching matching(program);
  std::vector<FlightDump> dumps;
  for (std::size_t r = 0; r < result.stopped.size(); ++r) {
    const std::string bytes = exec::flight_record(program, matching, static_cast<Rank>(r),
                                                  *result.stopped[r], *result.failure);
    dumps.push_back(parse_flight_dump(bytes, "record", static_cast<Rank>(r)));
  }
  EXPECT_EQ(dumps.size(), program.ranks.size());
  return dumps;
}

TEST(Diagnosis, FindsNothingWhereAllHasCompleted) {
  const Diagnosis diagnosis =
      diagnose({dump_of(0, 2, {{"nccl:send 0->1", 1}, {"nccl:all_reduce", 1}}),
                dump_of(1, 2, {{"nccl:recv 1<-0", 1}, {"nccl:all_reduce", 1}})},
               nullptr);
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.verdict(), nullptr);
}

TEST(Diagnosis, NamesWhoNeverJoinsACollective) {
  const Finding found =
      verdict_of({dump_of(0, 3, {{"nccl:all_reduce", 1}, {"nccl:all_reduce", 2, false}}),
                  dump_of(1, 3, {{"nccl:all_reduce", 1}}),
                  dump_of(2, 3, {{"nccl:all_reduce", 1}, {"nccl:all_reduce", 2, false}})});
  EXPECT_EQ(found.kind, Finding::Kind::never_posted);
  EXPECT_EQ(found.culprit, 1);
  EXPECT_NE(found.reason.find("all_reduce 1"), std::string::npos) << found.reason;
}

TEST(Diagnosis, NamesWhoCallsAnotherCollective) {
  const Finding found = verdict_of({dump_of(0, 3, {{"nccl:all_reduce", 1, false}}),
                                    dump_of(1, 3, {{"nccl:all_reduce", 1, false}}),
                                    dump_of(2, 3, {{"nccl:broadcast", 1, false}})});
  EXPECT_EQ(found.kind, Finding::Kind::differs);
  EXPECT_EQ(found.culprit, 2);
}

TEST(Diagnosis, FollowsWhoWaitsToWhereItEnds) {
  // 2 waits for 1, which waits for 0, which posted nothing more.
  const Finding found = verdict_of(
      {dump_of(0, 3, {{"nccl:send 0->1", 1}}),
       dump_of(1, 3, {{"nccl:recv 1<-0", 1}, {"nccl:send 1->2", 2}, {"nccl:recv 1<-0", 3, false}}),
       dump_of(2, 3, {{"nccl:recv 2<-1", 1}, {"nccl:recv 2<-1", 2, false}})});
  EXPECT_EQ(found.kind, Finding::Kind::never_posted);
  EXPECT_EQ(found.culprit, 0);
}

TEST(Diagnosis, NamesWhoseMessageDoesNotArrive) {
  const Finding found = verdict_of(
      {dump_of(0, 2, {{"nccl:send 0->1", 1}}), dump_of(1, 2, {{"nccl:recv 1<-0", 1, false}})});
  EXPECT_EQ(found.kind, Finding::Kind::does_not_arrive);
  EXPECT_EQ(found.culprit, 0);
}

TEST(Diagnosis, NamesARankWithoutARecord) {
  const Diagnosis diagnosis = diagnose({dump_of(0, 2, {{"nccl:recv 0<-1", 1, false}})}, nullptr);
  EXPECT_EQ(diagnosis.missing, std::vector<Rank>{1});
  ASSERT_NE(diagnosis.verdict(), nullptr);
  EXPECT_EQ(diagnosis.verdict()->kind, Finding::Kind::no_record);
  EXPECT_EQ(diagnosis.verdict()->culprit, 1);
}

TEST(Diagnosis, TellsACycle) {
  const Finding found = verdict_of({dump_of(0, 2, {{"nccl:recv 0<-1", 1, false}}),
                                    dump_of(1, 2, {{"nccl:recv 1<-0", 1, false}})});
  EXPECT_EQ(found.kind, Finding::Kind::cycle);
  EXPECT_EQ(found.culprit, std::nullopt);
}

TEST(Diagnosis, TellsTheFirstSizeThatDiffers) {
  const std::vector<FlightDump> dumps = {
      dump_of(0, 2,
              {{"nccl:send 0->1", 1},
               {"nccl:send 0->1", 2, false, 9},
               {"nccl:send 0->1", 3, false, 10}}),
      dump_of(1, 2,
              {{"nccl:recv 1<-0", 1}, {"nccl:recv 1<-0", 2, false}, {"nccl:recv 1<-0", 3, false}})};
  const Finding found = verdict_of(dumps);
  EXPECT_EQ(found.kind, Finding::Kind::differs);
  EXPECT_EQ(found.reason,
            "message 1 from rank 0 to rank 1 leaves as [[9, 2]] of Float and is received as "
            "[[8, 2]] of Float");
  EXPECT_EQ(found.culprit, std::nullopt);  // without a Program nobody knows who is right
}

TEST(Diagnosis, AskedWithAProgramNamesWhoseSizeIsNotItsOwn) {
  Program program = one_forward_one_backward(2, 3);
  for (RankProgram& rank : program.ranks) {
    for (Transfer& each : rank.transfers) each.size = Bytes{64};  // [[8, 2]] of Float
  }
  const Finding found = verdict_of({dump_of(0, 2, {{"nccl:send 0->1", 1, false}}),
                                    dump_of(1, 2, {{"nccl:recv 1<-0", 1, false, 9}})},
                                   &program);
  EXPECT_EQ(found.kind, Finding::Kind::differs);
  EXPECT_EQ(found.culprit, 1);
}

TEST(Diagnosis, AskedWithAProgramNamesWhoLeavesItsOrder) {
  const Program program = one_forward_one_backward(2, 3);
  // Rank 1 receives first.
  const Finding found = verdict_of({dump_of(0, 2, {{"nccl:send 0->1", 1, false}}),
                                    dump_of(1, 2, {{"nccl:send 1->0", 1, false}})},
                                   &program);
  EXPECT_EQ(found.kind, Finding::Kind::order_differs);
  EXPECT_EQ(found.culprit, 1);
  EXPECT_EQ(found.reason,
            "message 0 of rank 1 with rank 0 is a send, and the program has a receive there");
}

TEST(Diagnosis, TakesTheStateOfACoalescedGroupFromItsEnd) {
  const FlightDump dump = dump_of(
      0, 2, {{"nccl:send 0->1", 1, false}, {"nccl:recv 0<-1", 1, false}, {"nccl:coalesced", 1}});
  ASSERT_EQ(dump.entries.size(), 2U);
  EXPECT_TRUE(dump.entries[0].completed);
  EXPECT_TRUE(dump.entries[1].completed);
}

// One end after the other, all of one number: each entry belongs to the first.
std::size_t allocations_to_close(int groups) {
  std::vector<Posted> posted(static_cast<std::size_t>(groups), {"nccl:send 0->1", 1, false});
  posted.resize(posted.size() * 2, {"nccl:coalesced", 1, false});
  // A word that must be allocated, so that reading it counts.
  const std::string bytes = std::regex_replace(dump_text(2, posted), std::regex("scheduled"),
                                               "scheduled, and not known to be completed");
  const std::size_t before = testing::allocations();
  const FlightDump dump = parse_flight_dump(bytes, "rank_0", 0);
  EXPECT_EQ(dump.entries.size(), static_cast<std::size_t>(groups));
  return testing::allocations() - before;
}

TEST(FlightDump, IsReadInTimeProportionalToItsEntries) {
  const std::size_t few = allocations_to_close(500);
  const std::size_t many = allocations_to_close(1000);
  EXPECT_LT(many, few * 5 / 2);
}

TEST(FlightDump, TheEndOfAGroupIsOfWhatStandsSinceTheLast) {
  const FlightDump dump = dump_of(0, 2,
                                  {{"nccl:send 0->1", 1, false},
                                   {"nccl:coalesced", 1, true},
                                   {"nccl:send 0->1", 1, false},
                                   {"nccl:send 0->1", 1, true},
                                   {"nccl:coalesced", 1, false}});
  std::vector<bool> completed;
  for (const FlightEntry& each : dump.entries) completed.push_back(each.completed);
  EXPECT_EQ(completed, (std::vector<bool>{true, false, false}));
}

TEST(Diagnosis, MatchesWhatIsOpenWhereTheBeginningIsLost) {
  const Finding found =
      verdict_of({dump_of(0, 2, {{"nccl:send 0->1", 9}}, 8),
                  dump_of(1, 2, {{"nccl:recv 1<-0", 9}, {"nccl:recv 1<-0", 10, false}})});
  EXPECT_EQ(found.kind, Finding::Kind::never_posted);
  EXPECT_EQ(found.culprit, 0);
}

// Our own records, of a run that cannot go on.
TEST(FlightRecord, IsReadBackAndDiagnosed) {
  struct Bad final : exec::Compute {
    void run(const exec::ComputeCall& call) override {
      if (call.op == Op{OpKind::forward, 0, 1, 1}) throw std::runtime_error("not a number");
    }
  } compute;
  const Program program = one_forward_one_backward(3, 4);
  exec::VirtualStreams backend;
  const exec::RunResult result = backend.run(program, compute, {});
  const std::vector<FlightDump> dumps = records_of(program, result);
  const Finding found = verdict_of(dumps, &program);
  EXPECT_EQ(found.kind, Finding::Kind::recorded);
  EXPECT_EQ(found.culprit, 1);
  EXPECT_EQ(found.op, "1F1");
  EXPECT_EQ(found.reason, "at 1F1 of rank 1: not a number");
  EXPECT_EQ(dumps[1].notes->running, std::vector<std::string>{"1F1"});
}

// Rank 1 receives only after an op that needs what it receives.
TEST(FlightRecord, ShowsByItsEntriesWhoHasNotPosted) {
  Program program = one_forward_one_backward(2, 2);
  RankProgram& rank = program.ranks[1];
  const std::uint32_t receive = find(program, 1, {OpKind::receive_forward, 0, 1, 0});
  const std::uint32_t backward = find(program, 1, {OpKind::backward, 0, 1, 1});
  const auto wait = static_cast<std::uint32_t>(rank.waits.size());
  rank.instructions[backward].records = rank.events;
  rank.waits.push_back({rank.events++, 0});
  rank.instructions[receive].waits = {wait, 1};
  struct Nothing final : exec::Compute {
    void run(const exec::ComputeCall&) override {}
  } compute;
  exec::VirtualStreams backend;
  std::vector<FlightDump> dumps = records_of(program, backend.run(program, compute, {}));
  for (FlightDump& dump : dumps) dump.notes.reset();
  const Finding found = verdict_of(dumps, &program);
  EXPECT_EQ(found.kind, Finding::Kind::never_posted);
  EXPECT_EQ(found.culprit, 1);
  EXPECT_EQ(found.op, "1RECV_F0");
}

TEST(FlightRecord, OfAnotherProgramIsRefused) {
  const Program program = one_forward_one_backward(2, 3);
  EXPECT_THROW((void)diagnose({dump_of(2, 3, {})}, &program), InputError);
}

TEST(FlightDump, OfAnotherRankThanItsNameSaysIsRefused) {
  const std::string text =
      R"({"version": "2.10", "rank": 2, "pg_config": {"0": {"ranks": "[0, 2]"}},)"
      R"("entries": [], "counterflow": {}})";
  try {
    (void)parse_flight_dump(text, "record_0", 0);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "record_0: rank: it is the record of rank 2, and its name says 0; give the file "
                 "its name back");
  }
}

TEST(FlightDump, RefusesWhatIsNone) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      (void)parse_flight_dump(text, "dump_0", 0);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal("hello").find("dump_0: it is no flight record"), std::string::npos);
  EXPECT_NE(refusal("{}").find("\"version\" is missing"), std::string::npos);
  EXPECT_NE(refusal(R"({"version": "9.1"})").find("'9.1'"), std::string::npos);
  EXPECT_NE(refusal(R"({"version": "2.1", "pg_config": {"0": {"ranks": "all"}}})")
                .find("pg_config.0.ranks: 'all' is no list of ranks"),
            std::string::npos);
  const std::string before = R"({"version": "2.1", "pg_config": {"0": {"ranks": "[0, 1]"}},)"
                             R"("entries": [{"record_id": 0, "process_group": [")";
  EXPECT_NE(refusal(before + R"(7", "x"], "profiling_name": "nccl:barrier"}]})").find("'7'"),
            std::string::npos);
  EXPECT_NE(refusal(before + R"(0", "x"], "profiling_name": "nccl:send 0->2"}]})")
                .find("does not name two of the 2 members"),
            std::string::npos);
}

TEST(FlightDump, KnowsRanksByTheNamesOfFiles) {
  EXPECT_EQ(rank_of_flight_file("flight_record_12"), 12);
  EXPECT_EQ(rank_of_flight_file("nccl_trace_rank_0"), 0);
  EXPECT_EQ(rank_of_flight_file("rank3.json"), 3);
  EXPECT_EQ(rank_of_flight_file("4.pickle"), 4);
  for (const char* other :
       {"run.json", "notes", ".flight_record_1", "rank_99999999999", "", "x7y"}) {
    EXPECT_EQ(rank_of_flight_file(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace counterflow

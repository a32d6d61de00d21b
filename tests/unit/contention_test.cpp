// Whole programs over shared links, collectives, and runs in which something goes wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/passes/compile.h"
#include "simulator/simulate.h"
#include "simulator/stoppage.h"
#include "tests/support/optimizers.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::family_problem;
using testing::text;
using testing::uniform_problem;

// ---- Topology
// ------------------------------------------------------------------------------------

Machine two_nodes(bool rails) {
  Machine machine;
  machine.node_of = {0, 0, 1, 1};
  machine.rails = rails;
  machine.node = {400.0, Time{2}};
  machine.nic = {50.0, Time{5}};
  machine.spine = {30.0, Time{7}};
  return machine;
}

std::vector<std::string> names(const Topology& topology, Rank from, Rank to) {
  std::vector<std::string> result;
  for (const SharedLinkId link : topology.route(from, to)) {
    result.push_back(topology.links()[link].name);
  }
  return result;
}

TEST(Topology, RoutesThroughPortsNicsAndSpine) {
  using Names = std::vector<std::string>;
  const Topology topology(two_nodes(false), {});
  EXPECT_EQ(names(topology, 0, 1), (Names{"rank 0 out", "rank 1 in"}));
  EXPECT_EQ(names(topology, 1, 2),
            (Names{"node 0 nic 1 out", "node 0 up", "node 1 down", "node 1 nic 0 in"}));
  EXPECT_EQ(names(topology, 1, 1), Names{});
  EXPECT_EQ(topology.latency(0, 1), Time{2});
  EXPECT_EQ(topology.latency(0, 3), Time{12});
  EXPECT_EQ(topology.bandwidth(0, 1), 400.0);
  EXPECT_EQ(topology.bandwidth(0, 3), 30.0);
}

TEST(Topology, NicsOfOneIndexMeetAtTheirRail) {
  using Names = std::vector<std::string>;
  const Topology topology(two_nodes(true), {});
  EXPECT_EQ(names(topology, 0, 2), (Names{"node 0 nic 0 out", "node 1 nic 0 in"}));
  EXPECT_EQ(names(topology, 0, 3),
            (Names{"node 0 nic 0 out", "rail 0 up", "rail 1 down", "node 1 nic 1 in"}));
  EXPECT_EQ(topology.latency(0, 2), Time{5});
  EXPECT_EQ(topology.latency(0, 3), Time{12});
}

TEST(Topology, RanksMayShareANicAndLinksMayBeNamed) {
  using Names = std::vector<std::string>;
  Machine machine = two_nodes(false);
  machine.nics_per_node = 1;
  machine.spine = {};
  const Topology topology(machine, {{"cable", 10.0, Time{100}, {{0, 2}}}});
  EXPECT_EQ(names(topology, 0, 2), (Names{"node 0 nic 0 out", "node 1 nic 0 in", "cable"}));
  EXPECT_EQ(names(topology, 1, 2), (Names{"node 0 nic 0 out", "node 1 nic 0 in"}));
  EXPECT_EQ(topology.latency(0, 2), Time{105});
  EXPECT_EQ(topology.bandwidth(0, 2), 10.0);
  EXPECT_EQ(topology.find("cable"), SharedLinkId{12});
  EXPECT_EQ(topology.find("cabel"), std::nullopt);
}

// ---- Messages that meet
// --------------------------------------------------------------------------

// Two encoders (ranks 0 and 1, F of 10 and 14 ns) send 8 bytes each to a decoder (rank 2, 5 ns)
// through its one NIC of a byte a ns.
Simulation two_into_one(const ExecutionModel& execution) {
  Problem problem = uniform_problem(PlacementKind::loop, 3, 1, 1, Time{0}, Time{0}, Time{0});
  problem.costs = Costs({{Time{10}, {}, {}}, {Time{14}, {}, {}}, {Time{5}, {}, {}}});
  problem.graph = StageGraph(3, {{0, 2}, {1, 2}});
  problem.forward_only = true;
  problem.message.assign(3, Bytes{8});
  Machine machine;
  machine.node_of = {0, 1, 2};
  machine.nic = {1e9, Time{3}};
  problem.links = Links(Time{1}).with(Topology(machine, {}));
  const Program program = compile(problem, testing::order("0F0\n1F0\n2F0\n"));
  return simulate(program, problem.links, execution);
}

Interval last_of(const Simulation& simulation, std::size_t rank) {
  return simulation.timeline.ranks[rank].instructions.back();
}

TEST(SharedLinks, TwoMessagesIntoOneNicSlowEachOther) {
  // The first has had 4 of its 8 bytes at 14, then both go at a half: it ends at 22. The second has
  // had 4 and is alone: 26. Then the latencies, 3 and 1.
  const Simulation run = two_into_one(ExecutionModel::ideal());
  EXPECT_EQ(text(run.diagnostics), "");
  EXPECT_EQ(last_of(run, 0), (Interval{Time{10}, Time{22}}));
  EXPECT_EQ(last_of(run, 1), (Interval{Time{14}, Time{26}}));
  EXPECT_EQ(last_of(run, 2), (Interval{Time{30}, Time{35}}));
}

TEST(SharedLinks, ASerialCommunicatorLetsNothingMeet) {
  // Rank 2 takes the message of rank 0 (10 to 18, there at 22), and only then the other: 22 to 30.
  const Simulation run = two_into_one(ExecutionModel::nccl());
  EXPECT_EQ(text(run.diagnostics), "");
  EXPECT_EQ(last_of(run, 0), (Interval{Time{10}, Time{18}}));
  EXPECT_EQ(last_of(run, 1).end, Time{30});
  EXPECT_EQ(last_of(run, 2), (Interval{Time{34}, Time{39}}));
}

TEST(SharedLinks, LinksThatAreWideEnoughCostLatencyAlone) {
  for (const char* name : {"1f1b", "zbv", "dualpipe"}) {
    const Family& family = *find_family(name);
    Problem problem = family_problem(family, 4, family.default_chunks, 8, {3, 4, 2, 0.5});
    problem.message.assign(problem.message.size(), Bytes{8});
    const Program program = compile(problem, generate(family, problem));
    Machine machine;
    machine.node_of = {0, 0, 1, 1};
    machine.nic.bandwidth = 1e20;
    const Links wide = problem.links.with(Topology(machine, {}));
    for (const auto& model : {ExecutionModel::ideal(), ExecutionModel::nccl()}) {
      EXPECT_EQ(simulate(program, wide, model).timeline,
                simulate(program, problem.links, model).timeline);
    }
  }
}

// ---- Collectives
// ---------------------------------------------------------------------------------

// Four ranks that compute for 10, 20, 30 and 40 ns and then run the same collective of 40 bytes,
// over links of 3 ns and a byte a ns.
class FourMembers {
 public:
  explicit FourMembers(CollectiveKind kind) {
    program_.communicators.push_back({CommunicatorKind::data_parallel, {0, 1, 2, 3}});
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      program_.kernels.push_back({.kind = OpKind::forward, .duration = Time{10 * (rank + 1)}});
      RankProgram list;
      list.streams.resize(1);
      list.collectives.push_back({.kind = kind, .size = Bytes{40}});
      list.instructions.push_back({.kind = InstructionKind::run,
                                   .kernel = static_cast<std::uint32_t>(rank),
                                   .op = testing::op("0F0")});
      list.instructions.push_back(
          {.kind = InstructionKind::collective, .communicator = 0, .body = {0, 1}});
      program_.ranks.push_back(std::move(list));
    }
  }
  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] Simulation run() const {
    return simulate(program_, Links(Time{3}, 1e9), ExecutionModel::ideal());
  }

 private:
  Program program_;
};

TEST(Collectives, StartWithTheLastMemberAndEndTogether) {
  for (const auto& [kind, duration] :
       std::vector<std::pair<CollectiveKind, int>>{{CollectiveKind::all_reduce, 78},
                                                   {CollectiveKind::reduce_scatter, 39},
                                                   {CollectiveKind::all_gather, 39},
                                                   {CollectiveKind::all_to_all, 39},
                                                   {CollectiveKind::broadcast, 49},
                                                   {CollectiveKind::barrier, 6}}) {
    const Simulation run = FourMembers(kind).run();
    EXPECT_EQ(text(run.diagnostics), "");
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(last_of(run, rank), (Interval{Time{40}, Time{40 + duration}})) << name(kind);
    }
  }
}

TEST(Collectives, NeverStartWithoutAMemberOrWithAnotherKind) {
  FourMembers absent(CollectiveKind::all_reduce);
  absent.program().ranks[2].instructions.pop_back();
  EXPECT_EQ(absent.run().diagnostics.size(), 3U);
  FourMembers other(CollectiveKind::all_reduce);
  other.program().ranks[2].collectives[0].kind = CollectiveKind::broadcast;
  EXPECT_EQ(other.run().diagnostics.size(), 4U);
}

TEST(Collectives, OrdersThatDifferBetweenRanksDeadlock) {
  FourMembers members(CollectiveKind::barrier);
  members.program().communicators.push_back({CommunicatorKind::control, {0, 1, 2, 3}});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    auto& list = members.program().ranks[rank].instructions;
    list.push_back(list.back());
    list[rank == 1 ? 1 : 2].communicator = 1;
  }
  EXPECT_EQ(members.run().diagnostics.size(), 4U);
  std::swap(members.program().ranks[1].instructions[1], members.program().ranks[1].instructions[2]);
  EXPECT_EQ(text(members.run().diagnostics), "");
}

// ---- Scenarios
// -----------------------------------------------------------------------------------

// 1F1B on two ranks, two microbatches: F 10, B 20; hops of 5.
class SmallRun {
 public:
  SmallRun() {
    problem_ = uniform_problem(PlacementKind::loop, 2, 1, 2, Time{10}, Time{20}, Time{0}, Time{5});
    problem_.split_backward = SplitBackward::full;
    program_ = compile(problem_, generate(*find_family("1f1b"), problem_));
  }
  [[nodiscard]] Simulation run(const Scenario& scenario) const {
    return simulate(program_, problem_.links, ExecutionModel::ideal(), scenario);
  }
  [[nodiscard]] Simulation plain() const {
    return simulate(program_, problem_.links, ExecutionModel::ideal());
  }
  [[nodiscard]] Interval of(const Simulation& run, std::size_t rank, const char* op) const {
    const auto& list = program_.ranks[rank].instructions;
    const auto found = std::ranges::find(list, testing::op(op), &Instruction::op);
    return run.timeline.ranks[rank].instructions[static_cast<std::size_t>(found - list.begin())];
  }
  [[nodiscard]] const Program& program() const { return program_; }

 private:
  Problem problem_;
  Program program_;
};

TEST(Scenarios, NothingChangesNothing) {
  EXPECT_EQ(SmallRun().run({}).timeline, SmallRun().plain().timeline);
}

TEST(Scenarios, ASlowRankIsSlowBetweenItsTimes) {
  const SmallRun small;
  // F0 at full pace to 4, then at a third to 10 (2 of its ns), the last 4 at full pace.
  const Simulation run = small.run({{{Scenario::OneRank{0}, 3.0, Time{4}, Time{10}}}, {}});
  EXPECT_EQ(small.of(run, 0, "0F0"), (Interval{Time{0}, Time{14}}));
  EXPECT_EQ(small.of(run, 0, "0F1"), (Interval{Time{14}, Time{24}}));
}

TEST(Scenarios, AnOutageHoldsMessagesUntilItEnds) {
  const SmallRun small;
  const Simulation run =
      small.run({{{Scenario::OneLink{0, 1}, std::nullopt, Time{12}, Time{100}}}, {}});
  // On its way since 10, 2 of 5 ns done at 12.
  EXPECT_EQ(small.of(run, 1, "1F0"), (Interval{Time{103}, Time{113}}));
  EXPECT_EQ(text(run.diagnostics), "");
}

TEST(Scenarios, AFailureStopsWhatNeedsTheRank) {
  const SmallRun small;
  // Rank 1 fails in the middle of its first backward.
  const Scenario scenario{{}, {{1, Time{30}}}};
  const Simulation run = small.run(scenario);
  EXPECT_EQ(small.of(run, 1, "1F0").end, Time{25});
  EXPECT_EQ(small.of(run, 1, "1B0"), (Interval{Time{25}, Time{-1}}));
  EXPECT_EQ(small.of(run, 0, "0F1").end, Time{20});
  EXPECT_EQ(small.of(run, 0, "0B0").begin, Time{-1});
  const Stoppage stop = explain_stop(small.program(), run.timeline, scenario);
  ASSERT_EQ(stop.blocked.size(), 2U);
  EXPECT_EQ(stop.blocked[0].rank, 1);
  EXPECT_EQ(stop.blocked[0].what, "1B0");
  EXPECT_EQ(stop.blocked[0].reason, "the rank failed at 30 ns");
  EXPECT_EQ(stop.blocked[1].rank, 0);
  EXPECT_EQ(stop.blocked[1].what, "0RECV_B0");
  EXPECT_EQ(stop.blocked[1].reason, "waits for 1SEND_B0 of rank 1, which failed");
  EXPECT_LT(stop.ranks[1].finished, stop.ranks[1].instructions);
}

// Rank 1 is done at 75 and waits for rank 0, done at 100, to reduce the norm with.
TEST(Scenarios, AFailureInACollectiveNamesIt) {
  Problem problem =
      uniform_problem(PlacementKind::loop, 2, 1, 2, Time{10}, Time{20}, Time{0}, Time{5});
  problem.split_backward = SplitBackward::full;
  problem = testing::with_optimizer(problem, {.tied = Bytes{0}});
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  const Scenario scenario{{}, {{1, Time{90}}}};
  const Simulation run = simulate(program, problem.links, ExecutionModel::ideal(), scenario);
  const Stoppage stop = explain_stop(program, run.timeline, scenario);
  ASSERT_EQ(stop.blocked.size(), 2U);
  for (const Stoppage::Blocked& each : stop.blocked) {
    EXPECT_EQ(each.what.find("all_reduce 0 of communicator "), 0U) << each.what;
  }
  EXPECT_EQ(stop.blocked[1].reason, "waits for the other members of its collective");
}

TEST(Scenarios, AFailureAfterTheEndIsNone) {
  const SmallRun small;
  EXPECT_EQ(small.run({{}, {{1, Time{1000}}}}).timeline, small.plain().timeline);
}

TEST(Scenarios, ALinkThatNeverComesBackIsNamed) {
  const SmallRun small;
  const Scenario scenario{{{Scenario::OneLink{1, 0}, std::nullopt, Time{0}, std::nullopt}}, {}};
  const Simulation run = small.run(scenario);
  const Stoppage stop = explain_stop(small.program(), run.timeline, scenario);
  ASSERT_FALSE(stop.blocked.empty());
  EXPECT_EQ(
      stop.blocked[0].reason,
      "waits for the message of 1SEND_B0, which stands still on the link from rank 1 to rank 0");
}

TEST(Scenarios, SharedLinksSlowAndBreak) {
  Problem problem = uniform_problem(PlacementKind::loop, 2, 1, 1, Time{10}, Time{0}, Time{0});
  problem.forward_only = true;
  problem.message.assign(2, Bytes{20});
  Machine machine;
  machine.node_of = {0, 1};
  machine.nic = {1e9, Time{0}};
  problem.links = Links(Time{0}).with(Topology(machine, {}));
  const Program program = compile(problem, testing::order("0F0\n1F0\n"));
  const SharedLinkId out = *problem.links.topology()->find("node 0 nic 0 out");
  const auto arrival = [&](const Scenario& scenario) {
    const Simulation run = simulate(program, problem.links, ExecutionModel::ideal(), scenario);
    return run.timeline.ranks[1].instructions.back().begin.count();
  };
  EXPECT_EQ(arrival({}), 30);
  // 10 bytes by 20, then at a quarter.
  EXPECT_EQ(arrival({{{Scenario::OneShared{out}, 4.0, Time{20}, std::nullopt}}, {}}), 60);
  EXPECT_EQ(arrival({{{Scenario::OneLink{0, 1}, 4.0, Time{20}, std::nullopt}}, {}}), 60);
  EXPECT_EQ(arrival({{{Scenario::OneShared{out}, std::nullopt, Time{20}, Time{50}}}, {}}), 60);
  // Lost on its way.
  EXPECT_EQ(arrival({{}, {{0, Time{20}}}}), -1);
  EXPECT_EQ(arrival({{}, {{1, Time{20}}}}), -1);
}

}  // namespace
}  // namespace counterflow

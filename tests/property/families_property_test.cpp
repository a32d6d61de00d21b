#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "tests/support/problems.h"

// What must hold for every family and every shape it takes.
namespace counterflow {
namespace {

using testing::describe;
using testing::family_problem;

// Shapes of all kinds, also those a family refuses.
std::vector<Shape> shapes(const Family& family) {
  std::vector<Shape> result;
  for (const int p : {1, 2, 3, 4, 5, 6, 8, 16}) {
    std::set<int> counts = {1, 2, 3, p - 1, p, p + 1, 2 * p - 1, 2 * p, 2 * p + 1, 2 * p + 3};
    counts.erase(0);
    for (const int m : counts) {
      for (const int v : {1, 2, 3, 4}) {
        if (!family.takes_chunks && v != family.default_chunks) continue;
        for (const int g : {0, 1, p - 1, p, p + 1, m}) result.push_back({p, m, v, g});
      }
    }
  }
  return result;
}

std::vector<std::pair<Shape, Problem>> legal_problems(const Family& family) {
  std::vector<std::pair<Shape, Problem>> result;
  for (const Shape& shape : shapes(family)) {
    if (refusal(family, shape)) continue;
    Problem problem =
        family_problem(family, shape.ranks, shape.chunks, shape.microbatches, {12, 12, 12, 0});
    problem.group_size = shape.group_size;
    problem.forward_only = family.forward_only;
    result.emplace_back(shape, std::move(problem));
  }
  return result;
}

class EveryFamily : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] const Family& family() const { return *find_family(GetParam()); }
};

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  return names;
}

// The steps a stage-microbatch still has to take; fails on a wrong one.
class Progress {
 public:
  // 0: nothing done, 1: F, 2: F and I, 3: all.
  [[nodiscard]] bool advance(const Op& op) {
    int& done = done_[{op.stage, op.replica, op.microbatch}];
    const auto [from, to] = step(op.kind);
    if (done != from) return false;
    done = to;
    return true;
  }
  [[nodiscard]] int done(Stage stage, int replica, Microbatch microbatch) const {
    const auto found = done_.find({stage, replica, microbatch});
    return found == done_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::size_t size() const { return done_.size(); }

 private:
  static std::pair<int, int> step(OpKind kind) {
    switch (kind) {
      case OpKind::forward:
        return {0, 1};
      case OpKind::backward:
        return {1, 3};
      case OpKind::backward_input:
        return {1, 2};
      case OpKind::backward_weight:
        return {2, 3};
      default:
        return {-1, -1};
    }
  }
  std::map<std::tuple<int, int, int>, int> done_;
};

void expect_each_op_once(const Problem& problem, const Schedule& schedule) {
  ASSERT_EQ(schedule.ranks.size(), static_cast<std::size_t>(problem.ranks()));
  Progress progress;
  for (Rank r = 0; r < problem.ranks(); ++r) {
    for (const Slot& slot : schedule.ranks[static_cast<std::size_t>(r)]) {
      if (slot.is_pair()) {
        ASSERT_EQ(slot.first.kind, OpKind::forward);
        ASSERT_TRUE(makes_input_gradient(slot.second.kind));
      }
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind == OpKind::none) continue;
        ASSERT_EQ(problem.placement.rank_of(op.stage, op.replica), r);
        ASSERT_EQ(problem.replica_of(op.microbatch), op.replica);
        ASSERT_TRUE(progress.advance(op))
            << "out of order or twice: stage " << op.stage << " microbatch " << op.microbatch;
      }
    }
  }
  const int all = problem.forward_only ? 1 : 3;
  for (Stage s = 0; s < problem.stages(); ++s) {
    for (Microbatch i = 0; i < problem.microbatches; ++i) {
      ASSERT_EQ(progress.done(s, problem.replica_of(i), i), all) << "stage " << s << " mb " << i;
    }
  }
  ASSERT_EQ(progress.size(), static_cast<std::size_t>(problem.stages() * problem.microbatches));
}

TEST_P(EveryFamily, HasEveryOpOnceInOrderOnItsRank) {
  int tried = 0;
  for (const auto& [shape, problem] : legal_problems(family())) {
    SCOPED_TRACE(describe(family(), shape));
    expect_each_op_once(problem, generate(family(), problem));
    if (HasFatalFailure()) return;
    ++tried;
  }
  EXPECT_GT(tried, 20);
}

TEST_P(EveryFamily, CompletesAndIsNeverFasterThanItsWork) {
  for (const auto& [shape, problem] : legal_problems(family())) {
    const Schedule schedule = generate(family(), problem);
    const Time makespan = Evaluator(problem).makespan(schedule);
    ASSERT_GE(makespan, Time{0}) << describe(family(), shape) << " deadlocks";
    ASSERT_GE(makespan, testing::busy(problem, schedule, 0)) << describe(family(), shape);
  }
}

// No microbatch count is refused, and ranks are refused only where the placement does not exist.
TEST_P(EveryFamily, RefusesOnlyWhatItsRuleSays) {
  for (const Shape& shape : shapes(family())) {
    if (shape.group_size != 0) continue;
    const bool refused = refusal(family(), shape).has_value();
    const bool mirrored = family().placement == PlacementKind::bidirectional;
    const bool wave = family().placement == PlacementKind::wave;
    const bool impossible = (mirrored && shape.ranks % 2 != 0) || (wave && shape.chunks % 2 != 0);
    EXPECT_EQ(refused, impossible) << describe(family(), shape);
  }
}

TEST_P(EveryFamily, GeneratesTheSameTwice) {
  const Problem problem = family_problem(family(), 4, family().default_chunks, 9);
  EXPECT_EQ(generate(family(), problem).ranks, generate(family(), problem).ranks);
}

// A frozen stage has no W; stages before the first trained one no backward at all.
TEST_P(EveryFamily, LeavesOutWhatFrozenStagesDoNotNeed) {
  if (family().forward_only) return;
  Problem problem = family_problem(family(), 4, family().default_chunks, 9, {12, 12, 12, 0});
  problem.frozen[0] = problem.frozen[2] = 1;
  const Schedule schedule = generate(family(), problem);
  ASSERT_GE(Evaluator(problem).makespan(schedule), Time{0});
  std::map<std::pair<OpKind, int>, int> counts;
  for (const auto& order : schedule.ranks) {
    for (const Slot& slot : order) {
      ++counts[{slot.first.kind, slot.first.stage}];
      if (slot.is_pair()) ++counts[{slot.second.kind, slot.second.stage}];
    }
  }
  const auto count = [&](OpKind kind, int stage) { return counts[{kind, stage}]; };
  for (int stage = 0; stage < problem.stages(); ++stage) {
    const bool input = stage > 0;
    const bool weight = stage != 0 && stage != 2;
    EXPECT_EQ(count(OpKind::forward, stage), 9);
    EXPECT_EQ(count(OpKind::backward, stage) + count(OpKind::backward_input, stage), input ? 9 : 0);
    EXPECT_EQ(count(OpKind::backward, stage) + count(OpKind::backward_weight, stage),
              weight ? 9 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, EveryFamily, ::testing::ValuesIn(family_names()),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace counterflow

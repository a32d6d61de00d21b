#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "scheduler/graph/evaluate.h"
#include "tests/support/problems.h"

// The published closed forms and peaks against simulation.
namespace counterflow {
namespace {

using testing::describe;
using testing::family_problem;
using testing::peak_activations;
using testing::RankCosts;
using testing::set_pair_cost;
using testing::units;

// ---- Closed forms ---------------------------------------------------------------------------

struct FormulaCase {
  std::string family;
  std::vector<int> chunks;
  std::vector<RankCosts> costs;
  bool must_apply = true;  // at m >= 2p, even
};

void PrintTo(const FormulaCase& of, std::ostream* out) {
  *out << of.family;
}

class Formulas : public ::testing::TestWithParam<FormulaCase> {};

// Where a formula gives a figure, some rank idles exactly so, and none more.
TEST_P(Formulas, EqualTheSimulatedIdleTime) {
  const Family& family = *find_family(GetParam().family);
  int applied = 0;
  for (const int p : {1, 2, 3, 4, 6, 8}) {
    for (const int m : {1, 2, 3, 4, 7, 8, 9, 12, 13, 16, 21, 32}) {
      for (const int v : GetParam().chunks) {
        if (refusal(family, {p, m, v, 0})) continue;
        for (const RankCosts& costs : GetParam().costs) {
          const Problem problem = family_problem(family, p, v, m, costs);
          const auto formula = family.formula(problem);
          SCOPED_TRACE(describe(family, {p, m, v, 0}) + " F " + std::to_string(costs.forward));
          if (GetParam().must_apply && m >= 2 * p && m % 2 == 0) {
            ASSERT_TRUE(formula.has_value());
          }
          if (!formula) continue;
          ++applied;
          const Schedule schedule = generate(family, problem);
          const Time makespan = Evaluator(problem).makespan(schedule);
          for (Rank r = 0; r < p; ++r) {
            ASSERT_EQ(makespan - testing::busy(problem, schedule, r), formula->idle)
                << "rank " << r;
          }
          EXPECT_FALSE(formula->source.empty());
        }
      }
    }
  }
  EXPECT_GT(applied, 10);
}

INSTANTIATE_TEST_SUITE_P(
    ClosedForms, Formulas,
    ::testing::Values(
        FormulaCase{"gpipe", {1}, {{1, 1, 1, 0}, {3, 4, 1, 0.5}, {2, 1, 5, 9}}},
        FormulaCase{"1f1b", {1}, {{1, 1, 1, 0}, {3, 4, 1, 0}, {2, 1, 5, 0}}},
        FormulaCase{"eager-1f1b", {1}, {{1, 1, 1, 0}, {3, 4, 1, 0.5}, {3, 4, 1, 4}, {2, 1, 5, 3}}},
        FormulaCase{"interleaved-1f1b", {1, 2, 3, 4}, {{12, 12, 12, 0}, {36, 48, 12, 0}}},
        FormulaCase{"combined-1f1b", {1, 2, 3, 4}, {{12, 12, 12, 0}, {36, 48, 12, 0}}},
        FormulaCase{"looped-bfs", {1, 2, 3, 4}, {{12, 12, 12, 0}, {36, 48, 12, 0}}},
        FormulaCase{"zb-h1", {1}, {{1, 1, 1, 0}, {3, 4, 1, 0}, {5, 3, 3, 0}}},
        FormulaCase{
            "zb-h2", {1}, {{1, 1, 1, 0}, {3, 4, 1, 0}, {5, 3, 3, 1}, {4, 4, 1, 2}, {2, 2, 2, 2}}},
        FormulaCase{"interleaved-zb", {1, 2, 3, 4}, {{12, 12, 12, 0}, {36, 48, 12, 0}}},
        FormulaCase{"zbv", {2}, {{2, 2, 2, 0}, {6, 6, 6, 0}}},
        FormulaCase{"dualpipe", {1}, {{1, 1, 1, 0}, {4, 4, 1, 0}, {5, 4, 3, 0}}},
        FormulaCase{"dualpipev", {2}, {{2, 2, 2, 0}, {8, 8, 2, 0}, {10, 8, 6, 0}}}),
    [](const auto& test) { return testing::test_name(test.param.family); });

// With a cheaper pair the ranks differ; the formula is the one that idles most.
TEST(DualPipeFormula, IsTheRankThatIdlesMostWherePairsOverlap) {
  for (const auto* name : {"dualpipe", "dualpipev"}) {
    const Family& family = *find_family(name);
    const int v = family.default_chunks;
    for (const int p : {2, 4, 8}) {
      for (const RankCosts& costs : {RankCosts{4, 4, 4, 0}, RankCosts{8, 8, 4, 0}, {12, 8, 4, 0}}) {
        for (const double share : {1.0, 0.75}) {
          Problem problem = family_problem(family, p, v, 3 * p + p % 2, costs);
          set_pair_cost(problem, units(share * (costs.forward + costs.input + costs.weight) / v));
          const auto formula = family.formula(problem);
          ASSERT_TRUE(formula.has_value());
          const Schedule schedule = generate(family, problem);
          const Time makespan = Evaluator(problem).makespan(schedule);
          Time most{0};
          for (Rank r = 0; r < p; ++r) {
            most = std::max(most, makespan - testing::busy(problem, schedule, r));
          }
          EXPECT_EQ(most, formula->idle)
              << name << " p " << p << " F " << costs.forward << " " << share;
        }
      }
    }
  }
}

TEST(FormulaConditions, SilenceTheFormulaWhereTheyFail) {
  const auto formula = [](const char* name, int m, const RankCosts& costs) {
    const Family& family = *find_family(name);
    return family.formula(family_problem(family, 4, family.default_chunks, m, costs));
  };
  EXPECT_FALSE(formula("1f1b", 8, {1, 1, 1, 0.1}));      // latency
  EXPECT_FALSE(formula("eager-1f1b", 8, {1, 1, 1, 2}));  // 2c > F+B
  EXPECT_FALSE(formula("zb-h1", 8, {1, 1, 2, 0}));       // W > F
  EXPECT_FALSE(formula("zb-h2", 6, {1, 1, 1, 0}));       // m < 2p-1
  EXPECT_FALSE(formula("zbv", 8, {2, 2, 1, 0}));         // F = I = W
  EXPECT_FALSE(formula("zbv", 6, {2, 2, 2, 0}));         // m < 2p-1
  EXPECT_FALSE(formula("dualpipe", 9, {1, 1, 1, 0}));    // odd
  EXPECT_FALSE(formula("dualpipe", 6, {1, 1, 1, 0}));    // m < 2p
  EXPECT_FALSE(formula("dualpipe", 8, {1, 2, 1, 0}));    // F < I
  EXPECT_FALSE(formula("looped-bfs", 3, {2, 2, 2, 0}));  // m < p
  EXPECT_FALSE(formula("chimera", 8, {1, 1, 1, 0}));     // none published
}

TEST(FormulaConditions, SilenceTheFormulaForUnequalFrozenOrSplitStages) {
  const Family& family = *find_family("1f1b");
  const Problem plain = family_problem(family, 4, 1, 8);
  ASSERT_TRUE(family.formula(plain));
  Problem frozen = plain;
  frozen.frozen[1] = 1;
  EXPECT_FALSE(family.formula(frozen));
  Problem split = plain;
  split.split_backward = SplitBackward::split;
  EXPECT_FALSE(family.formula(split));
  Problem unequal = plain;
  auto stages = plain.costs.stages();
  stages[3].forward = units(2);
  unequal.costs = Costs(stages);
  EXPECT_FALSE(family.formula(unequal));
  Problem factors = plain;
  factors.costs = Costs(
      plain.costs.stages(),
      {std::vector<double>(8, 1.5), std::vector<double>(8, 1), std::vector<double>(8, 1), {}});
  EXPECT_FALSE(family.formula(factors));
}

// ---- Peak activations ---------------------------------------------------------------------------

// [rank] stage-microbatches held, as the table of formulas says.
std::vector<int> expected_peaks(const std::string& family, const Shape& shape) {
  const auto [p, m, v, asked] = shape;
  const int g = m / std::max(1, m / p) + (m % std::max(1, m / p) != 0 ? 1 : 0);
  std::vector<int> peaks;
  for (int r = 0; r < p; ++r) {
    const int lead = (v - 1) * g;
    if (family == "gpipe" || family == "looped-bfs") peaks.push_back(m * v);
    if (family == "1f1b") peaks.push_back(std::min(m, p - r));
    if (family == "eager-1f1b") peaks.push_back(std::min(m, 2 * (p - 1 - r) + 1));
    if (family == "interleaved-1f1b") peaks.push_back(std::min(m * v, 2 * (p - 1 - r) + lead + 1));
    if (family == "combined-1f1b") peaks.push_back(std::min(m * v, 2 * (p - 1 - r) + lead + 2));
    if (family == "zb-h1") peaks.push_back(std::min(m, p));
    if (family == "interleaved-zb") peaks.push_back(std::min(m * v, p + lead));
  }
  return peaks;
}

TEST(PeakActivations, AreThoseOfTheTable) {
  for (const auto* name : {"gpipe", "looped-bfs", "1f1b", "eager-1f1b", "interleaved-1f1b",
                           "combined-1f1b", "zb-h1", "interleaved-zb"}) {
    const Family& family = *find_family(name);
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int m : {1, 2, 3, 5, 8, 11, 16, 24}) {
        for (const int v : {1, 2, 3}) {
          const Shape shape{p, m, v, 0};
          if (refusal(family, shape)) continue;
          EXPECT_EQ(peak_activations(generate(family, family_problem(family, p, v, m))),
                    expected_peaks(name, shape))
              << describe(family, shape);
        }
      }
    }
  }
}

TEST(PeakActivations, OfTheLongScheduleAreThoseOfTheTable) {
  const auto peak = [](const char* name, int p) {
    const Family& family = *find_family(name);
    return testing::peak_of_all(
        generate(family, family_problem(family, p, family.default_chunks, 4 * p)));
  };
  for (const int p : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    const Problem zb_h2 = family_problem(*find_family("zb-h2"), p, 1, 4 * p);
    EXPECT_EQ(peak_activations(generate(*find_family("zb-h2"), zb_h2)),
              std::vector<int>(static_cast<std::size_t>(p), 2 * p - 1));
    EXPECT_EQ(peak("zbv", p), 2 * p) << p;
    EXPECT_EQ(peak("v-half", p), 2 * (p / 2 + 1)) << p;
    EXPECT_EQ(peak("v-min", p), 2 * ((p + 1) / 3 + 1)) << p;
    EXPECT_EQ(peak("1f1b-v", p), 2 * (2 * p / 3 + 1)) << p;
    EXPECT_EQ(peak("dualpipev", p), 2 * p + 1) << p;
    if (p % 2 != 0) continue;
    EXPECT_EQ(peak("dualpipe", p), p + 1) << p;
    EXPECT_EQ(peak("chimera", p), p) << p;
  }
}

TEST(PeakActivations, OfHanayoStayWithinOneWaveOfEveryStage) {
  const Family& family = *find_family("hanayo");
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int v : {2, 4, 6}) {
      for (const int m : {1, 3, p, 3 * p + 1}) {
        EXPECT_LE(testing::peak_of_all(generate(family, family_problem(family, p, v, m))), v * p);
      }
    }
  }
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "executor/virtual_streams.h"
#include "reference/gelu.h"
#include "reference/mlp.h"
#include "reference/model_compute.h"
#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tests/support/finite_differences.h"
#include "tests/support/layer_checks.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using namespace reference;  // NOLINT(google-build-using-namespace): everything here is of it
using testing::expect_gradients;
using testing::numbers;
using testing::worst_difference;

constexpr double kTolerance = 1e-7;

TEST(Gelu, MatchesKnownValuesAndItsSlope) {
  EXPECT_DOUBLE_EQ(gelu(0.0), 0);
  EXPECT_NEAR(gelu(1.0), 0.8413447460685429, 1e-15);  // 1 Φ(1)
  EXPECT_NEAR(gelu(-1.0), -0.15865525393145707, 1e-15);
  for (double x : {-3.0, -0.7, 0.0, 0.2, 4.0}) {
    const double slope = gelu_derivative(x);
    EXPECT_LT(worst_difference([&] { return gelu(x); }, {&x, 1}, {&slope, 1}), kTolerance) << x;
  }
}

TEST(Linear, MultipliesAndAdds) {
  const Linear<double> linear{2, 3};
  const std::vector<double> parameters = {1, 2, 3, 4, 5, 6, 10, 20, 30};
  const std::vector<double> x = {1, 1, 2, 0};
  std::vector<double> y(6);
  linear.forward(parameters, x, y);
  EXPECT_EQ(y, (std::vector<double>{13, 27, 41, 12, 26, 40}));
  std::vector<double> dx(4);
  linear.input_gradient(parameters, std::vector<double>{1, 0, 0, 0, 1, 1}, dx);
  EXPECT_EQ(dx, (std::vector<double>{1, 2, 8, 10}));
  std::vector<double> gradients(9, 1);
  linear.weight_gradient(x, std::vector<double>{1, 0, 0, 0, 1, 1}, gradients);
  EXPECT_EQ(gradients, (std::vector<double>{2, 2, 3, 1, 3, 1, 2, 2, 2}));
}

TEST(Mlp, GradientsMatchFiniteDifferences) {
  expect_gradients(Mlp<double>(3, {4, 4}));
  expect_gradients(Mlp<double>(1, {5, 2, 3}));
  expect_gradients(Mlp<double>(4, {3, 6, 5, 3}));
}

TEST(Mlp, ASecondForwardFromWhatIsThereChangesNothing) {
  // `saved` is a slot that held something else before.
  const Mlp<double> mlp(2, {3, 5, 3});
  std::vector<double> parameters(mlp.sizes().parameters);
  mlp.initialise(1, 0, parameters);
  const std::vector<double> input = numbers(6, 4);
  std::vector<double> saved(mlp.sizes().saved), dirty(mlp.sizes().saved, 7), a(6), b(6, 7);
  mlp.forward(parameters, input, a, saved);
  mlp.forward(parameters, input, b, dirty);
  EXPECT_EQ(a, b);
  EXPECT_EQ(saved, dirty);
}

TEST(OrderedSum, TakesTermsInTheirOrder) {
  OrderedSum<float> sum(1, {0, 2, 5});
  // In any other order these do not come to 1.
  sum.add(5, {1.0F});
  sum.add(0, {1e8F});
  EXPECT_FALSE(sum.complete());
  sum.add(2, {-1e8F});
  EXPECT_TRUE(sum.complete());
  EXPECT_EQ(sum.value()[0], 1.0F);
}

// A chain, and a graph in which a stage has two inputs, one two outputs and two have a loss.
std::vector<StageGraph> graphs() {
  return {StageGraph::chain(3), StageGraph(5, {{0, 2}, {1, 2}, {2, 3}, {2, 4}, {0, 4}})};
}

Problem problem_on(const StageGraph& graph, int microbatches) {
  Problem problem = testing::uniform_problem(PlacementKind::loop, graph.stages(), 1, microbatches,
                                             Time{3}, Time{3}, Time{2});
  problem.graph = graph;
  return problem;
}

TEST(Model, StepGradientsMatchFiniteDifferences) {
  for (const StageGraph& graph : graphs()) {
    const Problem problem = problem_on(graph, 3);
    const auto model = mlp_model<double>(problem, {.rows = 2, .width = 3, .hidden = 4}, 5);
    Parameters<double> parameters = initial_parameters(model);
    const auto step = [&] { return single_process_step(model, problem, parameters); };
    const StepResult<double> result = step();
    for (std::size_t s = 0; s < parameters.size(); ++s) {
      const auto loss = [&] {
        const auto losses = step().losses;
        return std::accumulate(losses.begin(), losses.end(), 0.0) / 3;
      };
      EXPECT_LT(worst_difference(loss, parameters[s], result.gradients[s]), kTolerance) << s;
    }
  }
}

TEST(Model, SinglePrecisionStaysNearDouble) {
  const Problem problem = problem_on(StageGraph::chain(4), 5);
  const auto narrow = mlp_model<float>(problem, {}, 5);
  const auto wide = mlp_model<double>(problem, {}, 5);
  const auto a = single_process_step(narrow, problem, initial_parameters(narrow));
  const auto b = single_process_step(wide, problem, initial_parameters(wide));
  for (std::size_t s = 0; s < a.gradients.size(); ++s) {
    for (std::size_t i = 0; i < a.gradients[s].size(); ++i) {
      EXPECT_NEAR(a.gradients[s][i], b.gradients[s][i], 1e-5);
    }
  }
}

TEST(Model, SeedsDecide) {
  const Problem problem = problem_on(StageGraph::chain(2), 2);
  const auto step = [&](std::uint64_t seed) {
    const auto model = mlp_model<float>(problem, {}, seed);
    return single_process_step(model, problem, initial_parameters(model));
  };
  EXPECT_EQ(step(1), step(1));
  EXPECT_NE(step(1).losses, step(2).losses);
}

TEST(ModelCompute, SaysWhichSlotIsTooSmall) {
  const Problem problem = problem_on(StageGraph::chain(2), 2);
  const auto model = mlp_model<float>(problem, {}, 1);
  ModelCompute compute(model, problem);
  exec::VirtualStreams backend;
  const auto result =
      backend.run(compile(problem, generate(*find_family("1f1b"), problem)), compute, {});
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->reason,
            "0F0: the slot of its output has 0 B, the model needs 48 B; compile the problem that "
            "with_sizes_of() returns");
  EXPECT_THROW(static_cast<void>(compute.result()), std::logic_error);
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "reference/attention.h"
#include "reference/ep_threads.h"
#include "reference/expert_parallel_block.h"
#include "reference/mixture_of_experts.h"
#include "reference/rms_norm.h"
#include "reference/sequence.h"
#include "tests/support/layer_checks.h"

namespace counterflow {
namespace {

using namespace reference;  // NOLINT(google-build-using-namespace): everything here is of it
using testing::expect_gradients;

TEST(RmsNorm, RowsComeOutWithMeanSquareOne) {
  const std::vector<double> x = {3, -3, 3, 3, 0, 2};
  std::vector<double> y(6);
  rms_norm<double>(2, x, y);
  EXPECT_NEAR(y[0], 1, 1e-6);
  EXPECT_NEAR(y[1], -1, 1e-6);
  EXPECT_NEAR(y[4], 0, 1e-6);
  EXPECT_NEAR(y[5], std::sqrt(2.0), 1e-6);
}

TEST(Attention, GradientsMatchFiniteDifferences) {
  expect_gradients(Attention<double>(1, 1, 3));
  expect_gradients(Attention<double>(2, 4, 3));
}

TEST(Attention, LooksBackOnly) {
  const Attention<double> attention(1, 3, 2);
  std::vector<double> parameters(attention.sizes().parameters);
  attention.initialise(1, 0, parameters);
  std::vector<double> saved(attention.sizes().saved);
  std::vector<double> x = testing::numbers(6, 1);
  std::vector<double> before(6);
  std::vector<double> after(6);
  attention.forward(parameters, x, before, saved);
  x[4] += 1;  // the last row
  attention.forward(parameters, x, after, saved);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 4, after.begin()));
  EXPECT_NE(before[4], after[4]);
}

TEST(MixtureOfExperts, GradientsMatchFiniteDifferences) {
  NoExpertParallelism<double> alone;
  for (const std::size_t top : {1U, 2U, 4U}) {
    const MoeShape shape{
        .sequences = 2, .length = 3, .width = 3, .hidden = 4, .experts = 4, .top = top};
    expect_gradients(MixtureOfExperts<double>(shape, alone));
  }
}

TEST(MixtureOfExperts, OneExpertIsAnMlp) {
  // With one expert the router does not matter, and nothing but its weights do.
  NoExpertParallelism<double> alone;
  const MixtureOfExperts<double> moe({.sequences = 1, .length = 2, .experts = 1, .top = 1}, alone);
  std::vector<double> parameters(moe.sizes().parameters);
  moe.initialise(1, 0, parameters);
  std::vector<double> saved(moe.sizes().saved), a(8), b(8);
  const std::vector<double> x = testing::numbers(8, 1);
  moe.forward(parameters, x, a, saved);
  for (std::size_t i = 0; i < moe.shared_parameters(); ++i) parameters[i] += 1;
  moe.forward(parameters, x, b, saved);
  EXPECT_EQ(a, b);
}

TEST(MixtureOfExperts, ExpertsAreSharedOutEvenly) {
  EpThreadGroup<double> group(3);
  EpThread<double> member(group, 0);
  EXPECT_THROW(MixtureOfExperts<double>({.experts = 4}, member), std::invalid_argument);
  NoExpertParallelism<double> alone;
  EXPECT_THROW(MixtureOfExperts<double>({.experts = 2, .top = 3}, alone), std::invalid_argument);
}

TEST(TransformerBlock, GradientsMatchFiniteDifferences) {
  NoExpertParallelism<double> alone;
  expect_gradients(transformer_block<double>({.sequences = 2, .length = 3, .width = 3}, alone));
}

// What a member, or one process for all of them, comes to.
struct Outcome {
  std::vector<float> output, input_gradient, gradients;
};

Outcome run(const StageLayers<float>& layers, std::span<const float> x, std::span<const float> dy) {
  const auto sizes = layers.sizes();
  Outcome outcome{std::vector<float>(sizes.output), std::vector<float>(sizes.input),
                  std::vector<float>(sizes.parameters)};
  std::vector<float> parameters(sizes.parameters);
  layers.initialise(7, 3, parameters);
  std::vector<float> saved(sizes.saved);
  layers.forward(parameters, x, outcome.output, saved);
  layers.input_gradient(parameters, x, dy, outcome.input_gradient, saved);
  layers.weight_gradient(x, saved, outcome.gradients);
  return outcome;
}

std::vector<float> joined(const std::vector<Outcome>& members, std::vector<float> Outcome::*which) {
  std::vector<float> all;
  for (const Outcome& each : members) {
    all.insert(all.end(), (each.*which).begin(), (each.*which).end());
  }
  return all;
}

// Members with a sequence each, on threads, against one process that has all sequences: outputs and
// input gradients stand side by side, shared weights' gradients are added by member, each expert's
// is with the member that holds it. Bit for bit.
void expect_one_process_is_matched(std::size_t members, std::size_t experts, std::size_t top,
                                   std::uint64_t series) {
  SCOPED_TRACE(members);
  const MoeShape whole{
      .sequences = members, .length = 5, .width = 4, .hidden = 6, .experts = experts, .top = top};
  MoeShape share = whole;
  share.sequences = 1;
  const std::size_t size = share.rows() * share.width;
  std::vector<float> x(size * members);
  std::vector<float> dy(x.size());
  fill_uniform(std::span(x), 5, series, 1);
  fill_uniform(std::span(dy), 6, series, 1);
  NoExpertParallelism<float> alone;
  const Outcome expected = run(transformer_block<float>(whole, alone), x, dy);

  EpThreadGroup<float> group(members);
  std::vector<Outcome> outcomes(members);
  {
    std::vector<std::jthread> threads;
    for (std::size_t m = 0; m < members; ++m) {
      threads.emplace_back([&, m] {
        EpThread<float> member(group, m);
        outcomes[m] =
            run(transformer_block<float>(share, member), std::span(x).subspan(m * size, size),
                std::span(dy).subspan(m * size, size));
      });
    }
  }
  EXPECT_EQ(joined(outcomes, &Outcome::output), expected.output);
  EXPECT_EQ(joined(outcomes, &Outcome::input_gradient), expected.input_gradient);
  const std::size_t shared = Attention<float>(1, share.length, share.width).sizes().parameters +
                             MixtureOfExperts<float>(whole, alone).shared_parameters();
  std::vector<float> gradients(outcomes[0].gradients.begin(),
                               outcomes[0].gradients.begin() + static_cast<std::ptrdiff_t>(shared));
  for (std::size_t m = 1; m < members; ++m) {
    for (std::size_t i = 0; i < shared; ++i) gradients[i] += outcomes[m].gradients[i];
  }
  for (const Outcome& each : outcomes) {
    gradients.insert(gradients.end(), each.gradients.begin() + static_cast<std::ptrdiff_t>(shared),
                     each.gradients.end());
  }
  EXPECT_EQ(gradients, expected.gradients);
}

TEST(ExpertParallelism, ComputesWhatOneProcessDoes) {
  for (std::uint64_t series = 0; series < 5; ++series) {
    expect_one_process_is_matched(1, 4, 2, series);
    expect_one_process_is_matched(2, 4, 2, series);
    expect_one_process_is_matched(4, 4, 3, series);
    expect_one_process_is_matched(3, 6, 1, series);  // some experts get nothing
  }
}

TEST(ExpertParallelism, OfAStageIsTheStagesBlock) {
  const MoeShape shape{.sequences = 6, .length = 3, .width = 4, .hidden = 5, .experts = 6};
  NoExpertParallelism<float> alone;
  const auto one = transformer_block<float>(shape, alone);
  const std::vector<float> x = [] {
    std::vector<float> numbers(72);
    fill_uniform(std::span(numbers), 5, 1, 1);
    return numbers;
  }();
  const Outcome expected = run(one, x, x);
  for (const std::size_t members : {1U, 2U, 3U, 6U}) {
    const ExpertParallelBlock<float> several(shape, members);
    EXPECT_EQ(several.sizes().parameters, one.sizes().parameters);
    const Outcome found = run(several, x, x);
    EXPECT_EQ(found.output, expected.output) << members;
    EXPECT_EQ(found.input_gradient, expected.input_gradient) << members;
    // Shared weights are added up by sequence in one process; with several a member, by member.
    const auto shared = static_cast<std::ptrdiff_t>(
        Attention<float>(1, shape.length, shape.width).sizes().parameters +
        MixtureOfExperts<float>(shape, alone).shared_parameters());
    EXPECT_TRUE(std::equal(found.gradients.begin() + shared, found.gradients.end(),
                           expected.gradients.begin() + shared))
        << members;
    if (members == 1 || members == 6) {
      EXPECT_EQ(found.gradients, expected.gradients) << members;
    }
  }
  EXPECT_THROW(ExpertParallelBlock<float>(shape, 4), std::invalid_argument);
  EXPECT_THROW(ExpertParallelBlock<float>(shape, 0), std::invalid_argument);
}

}  // namespace
}  // namespace counterflow

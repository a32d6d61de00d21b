#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "reference/numbers.h"
#include "reference/stage_layers.h"
#include "tests/support/finite_differences.h"

namespace counterflow::testing {

[[nodiscard]] inline std::vector<double> numbers(std::size_t count, std::uint64_t series) {
  std::vector<double> values(count);
  reference::fill_uniform(std::span(values), 99, series, 1);
  return values;
}

// dL/dx and dL/dw of L = <direction, y> against finite differences, for any layers.
inline void expect_gradients(const reference::StageLayers<double>& layers) {
  constexpr double kTolerance = 1e-7;
  const auto sizes = layers.sizes();
  std::vector<double> parameters(sizes.parameters);
  layers.initialise(3, 0, parameters);
  std::vector<double> input = numbers(sizes.input, 1);
  const std::vector<double> direction = numbers(sizes.output, 2);
  std::vector<double> output(sizes.output);
  std::vector<double> saved(sizes.saved);
  const auto value = [&] {
    layers.forward(parameters, input, output, saved);
    return std::inner_product(output.begin(), output.end(), direction.begin(), 0.0);
  };
  EXPECT_NE(value(), 0);
  std::vector<double> input_gradient(sizes.input);
  std::vector<double> gradients(sizes.parameters);
  layers.input_gradient(parameters, input, direction, input_gradient, saved);
  layers.weight_gradient(input, saved, gradients);
  EXPECT_LT(worst_difference(value, input, input_gradient), kTolerance);
  EXPECT_LT(worst_difference(value, parameters, gradients), kTolerance);
}

}  // namespace counterflow::testing

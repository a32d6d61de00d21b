#pragma once

#include <vector>

#include "reference/model.h"

namespace counterflow::reference {

// What one step of training comes to.
template <typename T>
struct StepResult {
  // [microbatch], of those that only go forward too; where several stages have a loss, their sum.
  std::vector<T> losses;
  // [stage]; empty for frozen stages. Of each copy of a stage the microbatches are added up in
  // their order; then the second copy's sum is added to the first's.
  std::vector<std::vector<T>> gradients;

  friend bool operator==(const StepResult&, const StepResult&) = default;
};

template <typename T>
using Parameters = std::vector<std::vector<T>>;  // [stage]

template <typename T>
[[nodiscard]] Parameters<T> initial_parameters(const Model<T>& model);

// The step without a pipeline: one microbatch after the other goes forward through all stages and
// back. What any schedule must come to, bit for bit.
template <typename T>
[[nodiscard]] StepResult<T> single_process_step(const Model<T>& model, const Problem& problem,
                                                const Parameters<T>& parameters);

// The same before copies are added up: [copy][stage]. Writes the losses, one a microbatch.
template <typename T>
[[nodiscard]] std::vector<Parameters<T>> gradients_of_copies(const Model<T>& model,
                                                             const Problem& problem,
                                                             const Parameters<T>& parameters,
                                                             std::vector<T>& losses);

extern template Parameters<float> initial_parameters(const Model<float>&);
extern template Parameters<double> initial_parameters(const Model<double>&);
extern template StepResult<float> single_process_step(const Model<float>&, const Problem&,
                                                      const Parameters<float>&);
extern template std::vector<Parameters<float>> gradients_of_copies(const Model<float>&,
                                                                   const Problem&,
                                                                   const Parameters<float>&,
                                                                   std::vector<float>&);
extern template StepResult<double> single_process_step(const Model<double>&, const Problem&,
                                                       const Parameters<double>&);

}  // namespace counterflow::reference

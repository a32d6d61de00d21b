#pragma once

#include <optional>
#include <vector>

#include "reference/model.h"
#include "reference/poison.h"
#include "reference/skipped_step.h"

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
// back. What any schedule must come to, bit for bit; where the problem compresses messages, what
// would cross ranks is packed and unpacked here too.
template <typename T>
[[nodiscard]] StepResult<T> single_process_step(const Model<T>& model, const Problem& problem,
                                                const Parameters<T>& parameters);

// The same before copies are added up.
template <typename T>
struct CopiesResult {
  std::vector<T> losses;                 // [microbatch]
  std::vector<Parameters<T>> gradients;  // [copy][stage]
  std::optional<NotFinite> not_finite;   // the first gradient of a microbatch that is not finite
};
// Of step number `step`, which `poison` may strike.
template <typename T>
[[nodiscard]] CopiesResult<T> gradients_of_copies(const Model<T>& model, const Problem& problem,
                                                  const Parameters<T>& parameters, int step = 0,
                                                  const Poison& poison = {});

extern template Parameters<float> initial_parameters(const Model<float>&);
extern template Parameters<double> initial_parameters(const Model<double>&);
extern template StepResult<float> single_process_step(const Model<float>&, const Problem&,
                                                      const Parameters<float>&);
extern template CopiesResult<float> gradients_of_copies(const Model<float>&, const Problem&,
                                                        const Parameters<float>&, int,
                                                        const Poison&);
extern template StepResult<double> single_process_step(const Model<double>&, const Problem&,
                                                       const Parameters<double>&);

}  // namespace counterflow::reference

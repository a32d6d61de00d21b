#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "executor/virtual_streams.h"
#include "scheduler/ir/execution_model.h"
#include "tests/support/value_compute.h"

namespace counterflow::testing {

// The values of every op under several interleavings; empty if some run fails or they differ, and
// then why.
[[nodiscard]] inline std::map<ValueCompute::Key, ValueCompute::Word> values_of(
    const Program& program, std::string* why = nullptr) {
  std::map<ValueCompute::Key, ValueCompute::Word> first;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    ValueCompute compute;
    // Streams alone: what communicators and launches add is another rule's business.
    ExecutionModel model = ExecutionModel::gloo();
    model.semantics = kAllSemantics[seed % 3];
    const auto result =
        exec::VirtualStreams().run(program, compute, {.seed = seed, .execution = model});
    if (result.failure || (!first.empty() && compute.results() != first)) {
      if (why != nullptr) *why = result.failure ? result.failure->reason : "the values differ";
      return {};
    }
    first = compute.results();
  }
  return first;
}

}  // namespace counterflow::testing

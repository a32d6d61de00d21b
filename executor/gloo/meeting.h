#pragma once

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/ir/units.h"

namespace counterflow::exec {

// Ranks that did not come to where all meet.
class MissingRanks : public EnvironmentError {
 public:
  MissingRanks(const std::string& message, std::vector<Rank> ranks)
      : EnvironmentError(message), ranks_(std::move(ranks)) {}
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  std::vector<Rank> ranks_;  // ascending
};

// Says in the store that this rank is there, at a place of that name, and waits until all of `size`
// have said so. Throws MissingRanks, with `advice` at the end, once `patience` is over, and
// EnvironmentError where somebody has said already that they are this rank.
void meet(gloo::rendezvous::Store& store, const std::string& place, Rank rank, int size,
          std::chrono::milliseconds patience, const std::string& advice);

}  // namespace counterflow::exec

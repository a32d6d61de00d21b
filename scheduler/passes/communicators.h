#pragma once

#include <map>
#include <utility>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow {

// The communicators that a pass adds to a program, by who is in them.
class Communicators {
 public:
  // The program must outlive it.
  explicit Communicators(Program& program) : program_(program) {}
  // Adds it the first time. O(log communicators).
  [[nodiscard]] CommunicatorId of(CommunicatorKind kind, const std::vector<Rank>& members) {
    const auto [entry, is_new] = known_.try_emplace(
        {kind, members}, static_cast<CommunicatorId>(program_.communicators.size()));
    if (is_new) program_.communicators.push_back({.kind = kind, .members = members});
    return entry->second;
  }

 private:
  Program& program_;
  std::map<std::pair<CommunicatorKind, std::vector<Rank>>, CommunicatorId> known_;
};

}  // namespace counterflow

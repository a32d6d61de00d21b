#include "scheduler/partition/held.h"

#include <algorithm>
#include <cstddef>

namespace counterflow {
namespace {

bool ends_gradient_work(const Problem& problem, const Op& op) {
  const bool weight = problem.needs_backward_weight(op.stage, op.microbatch);
  const bool input = problem.needs_backward_input(op.stage, op.microbatch);
  switch (op.kind) {
    case OpKind::forward:
      return !input;
    case OpKind::backward_input:
      return !weight;
    case OpKind::backward:
    case OpKind::backward_weight:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<std::int64_t> peak_bytes(const Problem& problem, const Schedule& schedule) {
  std::vector<std::int64_t> peaks;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& fixed = problem.limits.static_memory;
    std::int64_t held = fixed.empty() ? 0 : fixed[rank].value;
    std::int64_t peak = held;
    for (const Slot& slot : schedule.ranks[rank]) {
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind != OpKind::none) held += problem.allocated(op).value;
      }
      peak = std::max(peak, held);
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind != OpKind::none) held -= problem.freed(op).value;
      }
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::vector<std::int64_t> peak_copies(const Problem& problem, const Schedule& schedule) {
  std::vector<std::int64_t> peaks(static_cast<std::size_t>(problem.stages()), 0);
  for (const std::vector<Slot>& order : schedule.ranks) {
    std::vector<std::int64_t> held(peaks.size(), 0);
    for (const Slot& slot : order) {
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind == OpKind::forward) {
          peaks[op.stage] = std::max(peaks[op.stage], ++held[op.stage]);
        }
      }
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind != OpKind::none && ends_gradient_work(problem, op)) --held[op.stage];
      }
    }
  }
  return peaks;
}

}  // namespace counterflow

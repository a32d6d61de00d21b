#include "driver/file_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace counterflow {
namespace {

template <typename Visit>
void for_each_op_of_rank(const ScheduleFile& file, const Visit& visit) {
  for (std::size_t r = 0; r < file.rows.size(); ++r) {
    const auto rank = static_cast<Rank>(r);
    for (const Action& action : file.rows[r]) {
      if (action.form == Action::Form::group) {
        for (const Op& op : action.group) visit(rank, op);
        continue;
      }
      visit(rank, action.op);
      if (action.form == Action::Form::pair) visit(rank, action.paired);
    }
  }
}

template <typename Visit>
void for_each_op(const ScheduleFile& file, const Visit& visit) {
  for_each_op_of_rank(file, [&](Rank, const Op& op) { visit(op); });
}

bool holds(const Placement& placement, Rank rank, Stage stage) {
  for (int replica = 0; replica < placement.replicas(); ++replica) {
    if (placement.rank_of(stage, replica) == rank) return true;
  }
  return false;
}

// Why this op contradicts pipeline.split_backward, if it does. Of a frozen stage the backward is
// one op either way, and stages that are not there are for verification to name.
std::optional<std::string_view> split_fault(const Problem& problem, const Op& op) {
  if (op.stage >= problem.stages() || !problem.needs_backward_weight(op.stage)) return std::nullopt;
  if (problem.split_backward == SplitBackward::split && op.kind == OpKind::backward) {
    return "true asks for I and W apart, and this is a full backward";
  }
  const bool is_part = op.kind == OpKind::backward_input || op.kind == OpKind::backward_weight;
  if (problem.split_backward == SplitBackward::full && is_part) {
    return "false asks for full backwards, and this is a part of one";
  }
  return std::nullopt;
}

}  // namespace

int chunks_in(const ScheduleFile& file, int ranks, PlacementKind kind) {
  if (kind == PlacementKind::bidirectional) return 1;
  // A stage is what computes: one that is only sent, received or unsharded is a slip of its number.
  int stages = 0;
  for_each_op(file, [&](const Op& op) {
    if (is_compute(op.kind)) stages = std::max(stages, op.stage + 1);
  });
  return std::max(kind == PlacementKind::v ? 2 : 1, (stages + ranks - 1) / ranks);
}

std::optional<PlacementKind> likely_placement(const ScheduleFile& file) {
  const auto ranks = static_cast<int>(file.rows.size());
  for (const PlacementKind kind :
       {PlacementKind::loop, PlacementKind::v, PlacementKind::wave, PlacementKind::bidirectional}) {
    try {
      const Placement placement(kind, ranks, chunks_in(file, ranks, kind));
      bool fits = true;
      for_each_op_of_rank(file, [&](Rank rank, const Op& op) {
        if (!is_compute(op.kind) || !fits) return;
        fits = op.stage < placement.stages() && holds(placement, rank, op.stage);
      });
      if (fits) return kind;
    } catch (const std::invalid_argument&) {
      continue;  // does not exist for these numbers
    }
  }
  return std::nullopt;
}

bool is_forward_only(const ScheduleFile& file) {
  bool any = false;
  bool backward = false;
  for_each_op(file, [&](const Op& op) {
    any = true;
    backward |= is_backward(op.kind) || op.kind == OpKind::send_backward ||
                op.kind == OpKind::receive_backward;
  });
  return any && !backward;
}

void check_split(const Config& config, const Problem& problem, const ScheduleFile& file) {
  if (problem.split_backward == SplitBackward::automatic) return;
  for (std::size_t rank = 0; rank < file.rows.size(); ++rank) {
    for (std::size_t i = 0; i < file.rows[rank].size(); ++i) {
      const Action& action = file.rows[rank][i];
      for (const Op& op : {action.op, action.paired}) {
        const auto fault = split_fault(problem, op);
        if (!fault) continue;
        throw InputError(config.split_backward_where,
                         fmt::format("pipeline.split_backward: {}: {}, rank {}, position {}, {}; "
                                     "leave split_backward out to take the file as it is",
                                     *fault, file.name, rank, i, to_string(op)));
      }
    }
  }
}

}  // namespace counterflow

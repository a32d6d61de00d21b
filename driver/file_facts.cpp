#include "driver/file_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

namespace counterflow {
namespace {

template <typename Visit>
void for_each_op(const ScheduleFile& file, const Visit& visit) {
  for (const auto& row : file.rows) {
    for (const Action& action : row) {
      if (action.form == Action::Form::group) {
        std::for_each(action.group.begin(), action.group.end(), visit);
        continue;
      }
      visit(action.op);
      if (action.form == Action::Form::pair) visit(action.paired);
    }
  }
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

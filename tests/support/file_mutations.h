#pragma once

#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/ir/schedule_file.h"
#include "tests/support/mutations.h"

// Small random damage to schedule files. Each mutation says whether it changed anything.
namespace counterflow::testing {

using Rows = std::vector<std::vector<Action>>;
struct NamedFileMutation {
  std::string_view name;
  bool (*apply)(Random&, Rows&);
};

inline bool is_transfers(const Action& action) {
  return action.form == Action::Form::group ||
         (action.form == Action::Form::op && is_transfer(action.op.kind));
}
// A group of one for each transfer of an action, with the stage at its other end.
inline std::vector<Action> parts_of(const Action& action) {
  const std::vector<Op> ops =
      action.form == Action::Form::group ? action.group : std::vector<Op>{action.op};
  std::vector<Action> parts;
  for (std::size_t k = 0; k < ops.size(); ++k) {
    Action part{.form = Action::Form::op, .op = ops[k], .paired = {}, .group = {}};
    part.others = {action.others.empty() ? kAnyStage : action.others[k]};
    parts.push_back(std::move(part));
  }
  return parts;
}

// Neighbouring transfers into one group, or a group into its parts.
inline bool regroup(Random& random, Rows& rows) {
  auto& row = draw_from(random, rows);
  if (row.size() < 2) return false;
  const std::size_t k = draw_index(random, row.size() - 1);
  const auto at = row.begin() + static_cast<std::ptrdiff_t>(k);
  if (row[k].form == Action::Form::group) {
    const std::vector<Action> parts = parts_of(row[k]);
    row.insert(row.erase(at), parts.begin(), parts.end());
    return true;
  }
  if (!is_transfers(row[k]) || !is_transfers(row[k + 1])) return false;
  Action joined{.form = Action::Form::group, .op = {}, .paired = {}, .group = {}};
  for (const Action& member : {row[k], row[k + 1]}) {
    for (const Action& part : parts_of(member)) {
      joined.group.push_back(part.op);
      joined.others.push_back(part.others.front());
    }
  }
  *row.erase(at) = std::move(joined);
  return true;
}

inline bool relabel_action(Random& random, Rows& rows) {
  auto& row = draw_from(random, rows);
  if (row.empty()) return false;
  Action& action = draw_from(random, row);
  Op& op = action.form == Action::Form::group ? draw_from(random, action.group) : action.op;
  switch (draw(random, 0, 2)) {
    case 0:
      op.microbatch += op.microbatch == 0 || draw(random, 0, 1) == 0 ? 1 : -1;
      return true;
    case 1:
      op.stage = static_cast<std::uint16_t>(op.stage == 0 ? 1 : op.stage - 1);
      return true;
    default:
      if (!is_transfer(op.kind)) return false;
      op.kind = static_cast<OpKind>(draw(random, static_cast<int>(OpKind::send_forward),
                                         static_cast<int>(OpKind::receive_backward)));
      return true;
  }
}

inline const std::vector<NamedFileMutation>& file_mutations() {
  using Lists = ListMutations<Action>;
  static const std::vector<NamedFileMutation> all = {
      {"drop", Lists::drop},       {"duplicate", Lists::duplicate}, {"swap", Lists::swap},
      {"move", Lists::move},       {"re-rank", Lists::rerank},      {"regroup", regroup},
      {"relabel", relabel_action},
  };
  return all;
}

}  // namespace counterflow::testing

#include "scheduler/ir/schedule_file.h"

namespace counterflow {

Schedule ScheduleFile::compute() const {
  Schedule schedule{name, {}};
  schedule.ranks.reserve(rows.size());
  for (const auto& row : rows) {
    auto& order = schedule.ranks.emplace_back();
    for (const auto& action : row) {
      if (action.form == Action::Form::pair) {
        order.push_back({action.op, action.paired});
      } else if (action.form == Action::Form::op && is_compute(action.op.kind)) {
        order.push_back({action.op, {}});
      }
    }
  }
  return schedule;
}

}  // namespace counterflow

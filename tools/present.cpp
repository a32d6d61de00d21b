#include "tools/present.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "scheduler/ir/schedule_file.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/faults.h"

namespace counterflow {
namespace {

// A file as it came, its communication included.
std::string file_csv(const ScheduleFile& file) {
  std::string text;
  for (const auto& row : file.rows) {
    for (const Action& action : row) {
      if (&action != &row.front()) text += ',';
      if (action.form != Action::Form::group) {
        text += to_string(Slot{action.op, action.paired});
        continue;
      }
      std::vector<std::string> transfers;
      for (const Op& op : action.group) transfers.push_back(to_string(op));
      text += fmt::format("[{}]", fmt::join(transfers, ";"));
    }
    text += '\n';
  }
  return text;
}

}  // namespace

void present(const Report& report, const Options& options) {
  if (options.json) {
    print(to_json(report));
    return;
  }
  if (options.quiet) return;
  print(summary(report));
}

std::string faults_text(const Plan& plan, const Verdict& verdict) {
  std::string text;
  if (!verdict.order.empty()) {
    const std::string csv =
        plan.communication ? file_csv(*plan.communication) : to_csv(plan.schedule);
    text += to_text(verdict.order, GridOf{csv});
  }
  if (!verdict.program.empty()) text += to_text(verdict.program, GridOf{to_csv(*verdict.lowered)});
  return text;
}

int report_faults(const Plan& plan, const Verdict& verdict) {
  const std::size_t count = verdict.order.size() + verdict.program.size();
  message(Severity::error, fmt::format("schedule {} has {} fault{}\n{}", plan.schedule.name, count,
                                       count == 1 ? "" : "s", faults_text(plan, verdict)));
  return kAnswerIsNo;
}

}  // namespace counterflow

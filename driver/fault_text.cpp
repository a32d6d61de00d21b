#include "driver/fault_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "driver/faults.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

std::size_t fault_count(const Verdict& verdict) {
  return verdict.order.size() + verdict.program.size();
}

std::string counted_faults(const Plan& plan, const Verdict& verdict) {
  const std::size_t count = fault_count(verdict);
  return fmt::format("schedule {} has {} fault{}", plan.schedule.name, count,
                     count == 1 ? "" : "s");
}

}  // namespace

std::string faults_text(const Plan& plan, const Verdict& verdict) {
  std::string text = counted_faults(plan, verdict) + '\n';
  if (!verdict.order.empty()) {
    const std::string csv = plan.file ? to_csv(*plan.file) : to_csv(plan.schedule);
    text += to_text(verdict.order, GridOf{csv});
  }
  const std::size_t left = kMostFaultsShown - std::min(kMostFaultsShown, verdict.order.size());
  if (!verdict.program.empty() && left > 0) {
    text += to_text(verdict.program, GridOf{to_csv(*verdict.lowered)}, left);
  }
  if (fault_count(verdict) > kMostFaultsShown) {
    const std::size_t more = fault_count(verdict) - kMostFaultsShown;
    text += fmt::format("... and {} more fault{}\n", more, more == 1 ? "" : "s");
  }
  return text;
}

std::string faults_summary(const Plan& plan, const Verdict& verdict) {
  const Diagnostics& list = verdict.order.empty() ? verdict.program : verdict.order;
  return fmt::format("{}; the first: {}", counted_faults(plan, verdict), to_line(list.front()));
}

}  // namespace counterflow

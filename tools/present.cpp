#include "tools/present.h"

#include "driver/fault_text.h"
#include "tools/command.h"
#include "tools/console.h"

namespace counterflow {

void present(const Report& report, const Options& options) {
  if (options.json) {
    print(to_json(report));
    return;
  }
  if (options.quiet) return;
  print(summary(report));
}

void present_notes(const Plan& plan) {
  for (const std::string& note : plan.notes) message(Severity::note, note);
  for (const std::string& warning : plan.warnings) message(Severity::warning, warning);
}

int report_faults(const Plan& plan, const Verdict& verdict) {
  message(Severity::error, faults_text(plan, verdict));
  return kAnswerIsNo;
}

}  // namespace counterflow

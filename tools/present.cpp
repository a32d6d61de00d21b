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

int report_faults(const Plan& plan, const Verdict& verdict) {
  message(Severity::error, faults_text(plan, verdict));
  return kAnswerIsNo;
}

}  // namespace counterflow

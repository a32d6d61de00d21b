#pragma once

#include "report/report.h"
#include "tools/options.h"
#include "tools/pipeline.h"

namespace counterflow {

// A report as the options ask: JSON, or a summary on stdout with its warnings on stderr, or
// nothing.
void present(const Report& report, const Options& options);

// Every fault on stderr; returns the exit status for them.
int report_faults(const Plan& plan, const Verdict& verdict);

// The faults of a verdict as text, each with the cells around it; "" if there are none.
[[nodiscard]] std::string faults_text(const Plan& plan, const Verdict& verdict);

}  // namespace counterflow

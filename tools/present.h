#pragma once

#include "driver/pipeline.h"
#include "report/report.h"
#include "tools/options.h"

namespace counterflow {

// A report as the options ask: JSON, or a summary on stdout with its warnings on stderr, or
// nothing.
void present(const Report& report, const Options& options);

// What a plan says of itself, on stderr.
void present_notes(const Plan& plan);

// The first faults on stderr, each with the cells around it, and how many more there are; returns
// the exit status for them.
int report_faults(const Plan& plan, const Verdict& verdict);

}  // namespace counterflow

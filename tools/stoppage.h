#pragma once

#include "simulator/stoppage.h"
#include "tools/options.h"

namespace counterflow {

// Says that a run stopped and where: one JSON object on stdout with --json, else a few lines on
// stderr. Returns the exit status for it.
int report_stoppage(const Stoppage& stoppage, const Options& options);

}  // namespace counterflow

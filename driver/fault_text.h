#pragma once

#include <string>

#include "driver/pipeline.h"

// What is said of a faulty plan.
namespace counterflow {

// How many faults there are, and the first of them, each with the cells around it.
[[nodiscard]] std::string faults_text(const Plan& plan, const Verdict& verdict);

// The same in one line: how many, and the first. There must be one.
[[nodiscard]] std::string faults_summary(const Plan& plan, const Verdict& verdict);

}  // namespace counterflow

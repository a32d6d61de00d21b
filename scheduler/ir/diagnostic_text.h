#pragma once

#include <string>

#include "scheduler/ir/diagnostic.h"
#include "scheduler/ir/program.h"

namespace counterflow {

// One fault in a line: place, op, rule and message.
[[nodiscard]] std::string to_line(const Diagnostic& fault);

// What a fault of one transfer of an instruction is about: of a group of several, that one.
[[nodiscard]] Op op_of(const Instruction& instruction, const Transfer& transfer);

}  // namespace counterflow

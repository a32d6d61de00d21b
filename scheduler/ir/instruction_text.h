#pragma once

#include <string>

#include "scheduler/ir/program.h"

// What messages to people call an instruction.
namespace counterflow {

// By its op, as schedule files name it, or "all_reduce 0 of communicator 2".
[[nodiscard]] std::string called(const RankProgram& rank, const Instruction& what);
// The `number`-th collective of a communicator.
[[nodiscard]] std::string called(const Collective& what, std::uint32_t number,
                                 CommunicatorId communicator);

}  // namespace counterflow

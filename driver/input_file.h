#pragma once

#include <string>

#include "scheduler/error.h"

namespace counterflow {

// The bytes of a file the user named; `named_at`: where. Throws InputError with the system's
// reason.
[[nodiscard]] std::string read_input(const std::string& path, const SourceLocation& named_at = {});

}  // namespace counterflow

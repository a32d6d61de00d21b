#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/backend.h"

namespace counterflow {

// The flight record of every rank of which is known how far it was, all or none. Throws
// EnvironmentError.
void write_flight_records(const std::string& directory, const Program& program,
                          const exec::Failure& failure,
                          const std::vector<std::optional<exec::RankProgress>>& stopped);

}  // namespace counterflow

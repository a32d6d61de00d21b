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

// Takes records of earlier runs out of a folder, that of one rank or of all: what lies there
// afterwards is of one run. Nothing where there is no such folder. Throws EnvironmentError.
void forget_flight_records(const std::string& directory, std::optional<Rank> only);

}  // namespace counterflow

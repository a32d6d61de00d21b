#pragma once

#include <filesystem>

#include "driver/plan.h"
#include "scheduler/passes/compile.h"
#include "tools/options.h"

// What was typed, as the driver takes it.
namespace counterflow {

// Where the path of a schedule file starts: a path in a config is relative to it, one on the
// command line to the working directory.
[[nodiscard]] std::filesystem::path schedule_folder(const Options& options);

// Reads the config with its overrides and resolves its schedule. Throws InputError, and
// InfeasibleError where `auto` finds none.
[[nodiscard]] Plan make_plan(const Options& options);

// The observer that --dump-passes asks for; empty without.
[[nodiscard]] PassObserver pass_observer(const Options& options);

}  // namespace counterflow

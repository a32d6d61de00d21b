#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/pipeline.h"
#include "tools/output_files.h"

// The files a compiled schedule is written as.
namespace counterflow {

// The names of all files in `emit`, in the documented order; each entry is a file name, or its part
// before or after the dot and then every file with it. Empty: all. Throws InputError for an unknown
// one.
[[nodiscard]] std::vector<std::string_view> artifacts_named(const std::vector<std::string>& emit);

// The files, each made when it is written. They refer to plan and run.
[[nodiscard]] std::vector<OutputFile> make_artifacts(const std::vector<std::string_view>& names,
                                                     const Plan& plan, const Run& run);

}  // namespace counterflow

#pragma once

#include <string>

#include "report/json/reader.h"
#include "report/report.h"

namespace counterflow {

// Appends the object of to_json(report), without a line break after it.
void append_json(std::string& out, const Report& report);

// Reads it back. Throws InputError where it is not as to_json writes it.
[[nodiscard]] Report read_report(const json::Node& node);

// The version of report.json, timeline.json and program.json.
inline constexpr int kSchemaVersion = 1;

}  // namespace counterflow

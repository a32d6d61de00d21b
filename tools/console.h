#pragma once

#include <string_view>

// The two ends of the terminal: data to stdout, messages to stderr.
namespace counterflow {

// Keeps descriptors 0 to 2 from being taken by an output file when one of them is closed, and turns
// a closed pipe or an exceeded file size into a failed write. Call once, before anything is opened.
void prepare_streams();

// Writes data to stdout. Throws EnvironmentError if that fails.
void print(std::string_view text);
// The end of all data: what is buffered must reach its reader. Throws EnvironmentError if not.
void finish_output();

enum class Severity { error, warning, note };

// "error: text" to stderr, one line break at the end; in colour on a terminal unless NO_COLOR is
// set.
void message(Severity severity, std::string_view text);

}  // namespace counterflow

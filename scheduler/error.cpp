#include "scheduler/error.h"

#include <fmt/format.h>

#include <string>

namespace counterflow {

std::string to_string(const SourceLocation& location) {
  if (location.line <= 0) return location.file;
  if (location.column <= 0) return fmt::format("{}:{}", location.file, location.line);
  return fmt::format("{}:{}:{}", location.file, location.line, location.column);
}

}  // namespace counterflow

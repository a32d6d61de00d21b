#include "driver/input_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace counterflow {

std::string read_input(const std::string& path, const SourceLocation& named_at) {
  std::error_code ignored;
  // A directory opens like a file and only then fails to be read.
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream || is_directory) {
    throw InputError(named_at,
                     fmt::format("cannot read '{}': {}", path,
                                 is_directory ? "it is a directory" : std::strerror(errno)));
  }
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

}  // namespace counterflow

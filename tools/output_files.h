#pragma once

#include <string>
#include <vector>

namespace counterflow {

struct OutputFile {
  std::string name;
  std::string content;
};

// Writes the files into `directory`, which is made if missing, all or none: each under a temporary
// name first, renamed when all are complete. Throws EnvironmentError; then nothing is left behind.
void write_files(const std::string& directory, const std::vector<OutputFile>& files);

}  // namespace counterflow

#pragma once

#include <functional>
#include <string>
#include <vector>

namespace counterflow {

struct OutputFile {
  std::string name;
  std::function<std::string()> make;  // its content; called once, freed before the next file's
};

// Writes the files into `directory`, which is made if missing, all or none: each under a temporary
// name first, renamed when all are complete. Throws EnvironmentError; then nothing is left behind
// and what stood there before stands there still.
void write_files(const std::string& directory, const std::vector<OutputFile>& files);

}  // namespace counterflow

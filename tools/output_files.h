#pragma once

#include <functional>
#include <string>
#include <string_view>
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

// Can files of these names be written into `directory`, as far as that can be told without writing?
// For whoever works long before write_files. Throws EnvironmentError as that does.
void check_outputs(const std::string& directory, const std::vector<std::string_view>& names = {});

// A file that the user named, as the folder it is in and its name there.
struct OutputPath {
  explicit OutputPath(const std::string& file);
  std::string folder;
  std::string name;
};

}  // namespace counterflow

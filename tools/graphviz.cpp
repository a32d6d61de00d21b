#include "tools/graphviz.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "scheduler/error.h"

namespace counterflow {
namespace {

constexpr int kShellFoundNoCommand = 127;

// A file that goes when its owner does.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content)
      : path_((std::filesystem::temp_directory_path() / "counterflow-XXXXXX").string()) {
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0) throw EnvironmentError("cannot make a temporary file " + path_);
    const ssize_t written = write(descriptor, content.data(), content.size());
    if (close(descriptor) != 0 || written != static_cast<ssize_t>(content.size())) {
      unlink(path_.c_str());
      throw EnvironmentError("cannot write the temporary file " + path_);
    }
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string render_svg(const std::string& dot) {
  const TemporaryFile input(dot);
  std::FILE* output = popen(("dot -Tsvg '" + input.path() + "' 2>/dev/null").c_str(), "r");
  if (output == nullptr) throw EnvironmentError("cannot start `dot`");
  std::string svg;
  std::array<char, 4096> block{};
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), output)) {
    svg.append(block.data(), got);
  }
  const int status = pclose(output);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kShellFoundNoCommand) {
    throw EnvironmentError("graph.svg needs Graphviz's `dot`: apt-get install graphviz");
  }
  if (status != 0) throw EnvironmentError("`dot` failed to draw the graph");
  return svg;
}

}  // namespace counterflow

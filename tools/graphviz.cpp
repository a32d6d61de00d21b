#include "tools/graphviz.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "scheduler/error.h"

namespace counterflow {
namespace {

constexpr int kShellFoundNoCommand = 127;

// A file without a name, which goes when its owner does.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content) : descriptor_(memfd_create("counterflow", 0)) {
    if (descriptor_ < 0) throw EnvironmentError("cannot make a file in memory");
    if (write(descriptor_, content.data(), content.size()) !=
        static_cast<ssize_t>(content.size())) {
      close(descriptor_);
      throw EnvironmentError("cannot write a file in memory");
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  // For this process and those it starts.
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

std::string render_svg(const std::string& dot) {
  const MemoryFile input(dot);
  std::FILE* output = popen(("dot -Tsvg <" + input.path() + " 2>/dev/null").c_str(), "r");
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

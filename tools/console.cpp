#include "tools/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "scheduler/error.h"

namespace counterflow {
namespace {

[[noreturn]] void fail_output() {
  const std::string reason = std::strerror(errno);
  throw EnvironmentError("cannot write to standard output: " + reason);
}

bool colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

std::string_view word(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      break;
  }
  return "note";
}

std::string_view escape(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "\033[1;31m";
    case Severity::warning:
      return "\033[1;33m";
    case Severity::note:
      break;
  }
  return "\033[1;36m";
}

}  // namespace

void prepare_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    // The lowest free number is this one. Read-only, so that a write still fails.
    if (open("/dev/null", O_RDONLY) == -1) std::abort();
  }
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_output();
}

void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_output();
}

void message(Severity severity, std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::string line =
      colour() ? fmt::format("{}{}:\033[0m {}\n", escape(severity), word(severity), text)
               : fmt::format("{}: {}\n", word(severity), text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace counterflow

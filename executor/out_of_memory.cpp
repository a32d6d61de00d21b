#include "executor/out_of_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace counterflow::exec {

std::string out_of_memory(std::string_view what) {
  rlim_t least = RLIM_INFINITY;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0) least = std::min(least, limit.rlim_cur);
  }
  const std::string why =
      least == RLIM_INFINITY
          ? std::string("the machine does not give it; run it where there is more memory")
          : fmt::format("a process may have {} MiB here; raise that limit (ulimit -v, ulimit -d)",
                        least >> 20U);
  return fmt::format(
      "there is no memory for {}: {}, or make messages, activations or the "
      "microbatches in flight fewer",
      what, why);
}

}  // namespace counterflow::exec

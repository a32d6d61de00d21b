#pragma once

#include <string>
#include <string_view>

namespace counterflow::exec {

// What to say where memory for `what` cannot be had: the limit of this process that may be in the
// way, and what helps. "rank 1: its activations of 64 TiB".
[[nodiscard]] std::string out_of_memory(std::string_view what);

}  // namespace counterflow::exec

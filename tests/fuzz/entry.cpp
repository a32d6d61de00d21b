#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/targets.h"

// libFuzzer calls this with each input; TARGET is one of targets.h.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  counterflow::fuzz::TARGET(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}

#include <stdexcept>

#include "tests/fuzz/targets.h"

namespace counterflow::fuzz {

void require(bool holds, const std::string& property) {
  if (!holds) throw std::logic_error(property);
}

}  // namespace counterflow::fuzz

#include "reference/skipped_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace counterflow::reference {

std::string to_string(const SkippedStep& skipped) {
  std::string text = fmt::format("step {}: ", skipped.step);
  if (skipped.first) {
    const NotFinite& first = *skipped.first;
    text += fmt::format(
        "gradients not finite, first seen by rank {} in W of stage {} for microbatch {}",
        first.rank, first.stage, first.microbatch);
  } else {
    text += skipped.whole ? "the norm of the gradients overflows" : "sums of gradients overflow";
  }
  if (skipped.whole) return text + "; step skipped";
  return text + fmt::format("; stage{} {} skipped it", skipped.stages.size() == 1 ? "" : "s",
                            fmt::join(skipped.stages, ", "));
}

}  // namespace counterflow::reference

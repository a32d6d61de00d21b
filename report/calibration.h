#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/drawing.h"

namespace counterflow {

// What the ops of a timeline took: of each stage and kind the median over microbatches and copies
// of the stage. Nothing where none ran alone.
struct Calibration {
  struct Stage {
    std::optional<Time> forward;
    std::optional<Time> backward;  // whole
    std::optional<Time> backward_input;
    std::optional<Time> backward_weight;
  };
  std::vector<Stage> stages;
  std::map<std::pair<int, int>, Time> pairs;  // fused, by forward and backward stage
};

// O(instructions log instructions).
[[nodiscard]] Calibration calibrate(const Drawing& drawing);

// `stages` of a config with these costs. Of a backward that only ran whole each part is half; what
// never ran at all costs nothing. Throws InputError where a stage ran a kind in fused pairs alone:
// that does not say what it takes by itself.
[[nodiscard]] std::string stages_yaml(const Calibration& calibration);

}  // namespace counterflow

#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>

#include "scheduler/problem/config.h"

// Configs that must be refused, with the words that refuse them.
namespace counterflow::testing {

inline constexpr std::string_view kGoodConfig =
    "pipeline: {ranks: 2, microbatches: 4, schedule: 1f1b}\n"
    "stages: {forward: 1ms, backward_input: 2ms, backward_weight: 3ms}\n";

// A good config spoilt by overrides. The last one is to blame, so `message` is what follows
// "--set <last override>: ".
struct OverrideCase {
  std::string name;
  Overrides overrides;
  std::string message;
};

// A config refused as it stands; `message` is all of it.
struct TextCase {
  std::string name;
  std::string yaml;
  std::string message;
};

inline void PrintTo(const OverrideCase& c, std::ostream* out) {
  *out << c.name;
}
inline void PrintTo(const TextCase& c, std::ostream* out) {
  *out << c.name;
}

template <typename Case>
[[nodiscard]] std::string case_name(const ::testing::TestParamInfo<Case>& param) {
  return param.param.name;
}

// The message of the InputError this config meets on its way to a Problem; "accepted" if it meets
// none.
[[nodiscard]] inline std::string refusal(std::string_view yaml, const Overrides& overrides = {}) {
  try {
    const Config config = parse_config(yaml, "model.yaml", overrides);
    (void)make_problem(config, {Placement(PlacementKind::loop, config.ranks.value, 1), false});
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace counterflow::testing

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace counterflow {

// Layers of each stage, in order. The layers are contiguous, so this is the whole cut; a stage of
// no layers passes on what it receives.
using Cut = std::vector<int>;

// The layers of each stage as letters, one a layer: "Ettt", "tt", "mL". An empty text is a stage
// that passes on what it receives.
using StageLetters = std::vector<std::string>;

// The most layers a model, and a layout, may have.
inline constexpr std::size_t kMaxLayers = 4096;

// Reads Megatron's layout string: letters are layers, `|` ends a stage, `x*n` repeats a letter and
// `(..)*n` a group, which may hold others; commas and blanks mean nothing. Throws InputError with
// the position, the rule and a fix. O(length + layers).
//
// Source: Megatron-LM, --pipeline-model-parallel-layout.
[[nodiscard]] StageLetters parse_layout(std::string_view text);

// The shortest of the usual forms: runs of three or more letters as `x*n`, of equal stages as
// `(..|)*n`. parse_layout reads it back as the same stages. O(layers).
[[nodiscard]] std::string layout_string(const StageLetters& stages);

}  // namespace counterflow

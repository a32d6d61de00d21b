#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scheduler/ir/units.h"

namespace counterflow {

// How a message travels. `bytes`, `fp16` and `fp32` say what it holds and leave it as it is in
// memory; `bf16` and `fp8` are FP32 elements in memory and packed on their way.
enum class DataType : std::uint8_t { bytes, bf16, fp16, fp32, fp8 };
[[nodiscard]] std::string_view name(DataType type);

// FP8 travels in blocks of so many elements, the last one perhaps shorter, each with an FP32 scale.
inline constexpr std::int64_t kFp8Block = 128;

[[nodiscard]] constexpr bool is_packed(DataType type) {
  return type == DataType::bf16 || type == DataType::fp8;
}

// The size on the wire of what has this size in memory, a multiple of 4 B if the type packs: two
// bytes an element as BF16, one as FP8 and four a block. One FP8 element alone gets larger.
[[nodiscard]] constexpr Bytes packed_size(DataType type, Bytes in_memory) {
  const std::int64_t elements = in_memory.value / 4;
  if (type == DataType::bf16) return {2 * elements};
  if (type == DataType::fp8) return {elements + 4 * ((elements + kFp8Block - 1) / kFp8Block)};
  return in_memory;
}

// And back; of a size that nothing packs to, that of the whole elements in it.
[[nodiscard]] constexpr Bytes unpacked_size(DataType type, Bytes on_wire) {
  if (type == DataType::bf16) return {on_wire.value / 2 * 4};
  if (type != DataType::fp8) return on_wire;
  constexpr std::int64_t kWhole = kFp8Block + 4;
  const std::int64_t rest = on_wire.value % kWhole;
  return {4 * (on_wire.value / kWhole * kFp8Block + (rest > 4 ? rest - 4 : 0))};
}

}  // namespace counterflow

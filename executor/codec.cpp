#include "executor/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace counterflow::exec {
namespace {

// ---- BF16 -------------------------------------------------------------------------------------

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kQuiet = 0x40;
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16U | kQuiet);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

float from_bf16(std::uint16_t code) {
  return std::bit_cast<float>(std::uint32_t{code} << 16U);
}

// ---- E4M3 -------------------------------------------------------------------------------------

constexpr std::uint8_t kNan = 0x7f;
constexpr float kLeastNormal = 0x1p-6F;

// At most 448 in absolute value.
std::uint8_t to_e4m3(float value) {
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(value) >> 31U << 7U;
  const float size = std::fabs(value);
  if (size < kLeastNormal) {
    // Here the last bit of a float is worth one step of the denormals; eight of them are
    // kLeastNormal.
    constexpr float kStepIsLastBit = 0x1p14F;
    const auto steps = std::bit_cast<std::uint32_t>(size + kStepIsLastBit) -
                       std::bit_cast<std::uint32_t>(kStepIsLastBit);
    return static_cast<std::uint8_t>(sign | steps);
  }
  constexpr std::uint32_t kDropped = 20;  // of 23 bits behind the point
  constexpr std::uint32_t kBiases = 127 - 7;
  const auto bits = std::bit_cast<std::uint32_t>(size);
  const std::uint32_t rounded = (bits + 0x7ffffU + (bits >> kDropped & 1U)) >> kDropped;
  return static_cast<std::uint8_t>(sign | (rounded - (kBiases << 3U)));
}

float e4m3(std::uint32_t code) {
  if ((code & 0x7fU) == kNan) return std::numeric_limits<float>::quiet_NaN();
  const std::uint32_t exponent = code >> 3U & 15U;
  const std::uint32_t fraction = code & 7U;
  const float size =
      exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                    : std::ldexp(static_cast<float>(8 + fraction), static_cast<int>(exponent) - 10);
  return (code & 0x80U) != 0 ? -size : size;
}

float from_e4m3(std::uint8_t code) {
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values{};
    for (std::uint32_t each = 0; each < values.size(); ++each) values[each] = e4m3(each);
    return values;
  }();
  return kValues[code];
}

// ---- Blocks -----------------------------------------------------------------------------------

// The least power of two that brings the largest finite element down to 448; 1 for zeros alone.
float scale_of(std::span<const float> block) {
  float largest = 0;
  for (const float value : block) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  if (largest == 0) return 1;
  int exponent = 0;
  const float fraction = std::frexp(largest, &exponent);  // 448 = 0.875 * 2^9
  return std::ldexp(1.0F, std::max(exponent - (fraction <= 0.875F ? 9 : 8), -149));
}

void pack_block(std::span<const float> block, float scale, std::byte* codes) {
  const double inverse = 1 / static_cast<double>(scale);  // of a power of two: exact
  for (std::size_t i = 0; i < block.size(); ++i) {
    const std::uint8_t code =
        std::isfinite(block[i]) ? to_e4m3(static_cast<float>(block[i] * inverse)) : kNan;
    codes[i] = std::byte{code};
  }
}

void unpack_block(const std::byte* codes, float scale, std::span<float> block) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < block.size(); ++i) {
    const double value = static_cast<double>(from_e4m3(std::to_integer<std::uint8_t>(codes[i]))) *
                         static_cast<double>(scale);
    // 256 * 2^120, to which the largest floats round, is none. NaN passes.
    block[i] = static_cast<float>(std::clamp(value, -kLargest, kLargest));
  }
}

// Calls visit(block number, first element, elements) for each block.
template <typename Visit>
void for_each_block(std::size_t elements, Visit visit) {
  constexpr auto kBlock = static_cast<std::size_t>(kFp8Block);
  for (std::size_t first = 0; first < elements; first += kBlock) {
    visit(first / kBlock, first, std::min(kBlock, elements - first));
  }
}

std::size_t scales_size(std::size_t elements) {
  constexpr auto kBlock = static_cast<std::size_t>(kFp8Block);
  return (elements + kBlock - 1) / kBlock * sizeof(float);
}

// As the program has it, in elements.
std::size_t elements_of(const Transfer& transfer) {
  return static_cast<std::size_t>(unpacked_size(transfer.type, transfer.size).value) /
         sizeof(float);
}

// Slots begin on multiples of 256 B.
float* first_element(Buffer slot) {
  return reinterpret_cast<float*>(slot.data());
}

}  // namespace

void pack(DataType type, std::span<const float> values, std::span<std::byte> wire) {
  if (type == DataType::bf16) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t code = to_bf16(values[i]);
      std::memcpy(&wire[i * sizeof code], &code, sizeof code);
    }
    return;
  }
  std::byte* codes = wire.data() + scales_size(values.size());
  for_each_block(values.size(), [&](std::size_t block, std::size_t first, std::size_t count) {
    const float scale = scale_of(values.subspan(first, count));
    std::memcpy(&wire[block * sizeof scale], &scale, sizeof scale);
    pack_block(values.subspan(first, count), scale, codes + first);
  });
}

void unpack(DataType type, std::span<const std::byte> wire, std::span<float> values) {
  if (type == DataType::bf16) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t code = 0;
      std::memcpy(&code, &wire[i * sizeof code], sizeof code);
      values[i] = from_bf16(code);
    }
    return;
  }
  const std::byte* codes = wire.data() + scales_size(values.size());
  for_each_block(values.size(), [&](std::size_t block, std::size_t first, std::size_t count) {
    float scale = 0;
    std::memcpy(&scale, &wire[block * sizeof scale], sizeof scale);
    unpack_block(codes + first, scale, values.subspan(first, count));
  });
}

void pass_through(DataType type, std::span<float> values) {
  if (!is_packed(type)) return;
  const Bytes size{static_cast<std::int64_t>(values.size_bytes())};
  std::vector<std::byte> wire(static_cast<std::size_t>(packed_size(type, size).value));
  pack(type, values, wire);
  unpack(type, wire, values);
}

std::span<const std::byte> leaving(const Transfer& transfer, Buffer slot,
                                   std::vector<std::byte>& packed) {
  if (!is_packed(transfer.type)) return slot;
  const std::size_t elements = elements_of(transfer);
  if (slot.size() < elements * sizeof(float)) return {};
  packed.resize(static_cast<std::size_t>(transfer.size.value));
  pack(transfer.type, {first_element(slot), elements}, packed);
  return packed;
}

void arriving(const Transfer& transfer, std::span<const std::byte> wire, Buffer slot) {
  if (!is_packed(transfer.type)) {
    const std::size_t size = std::min(wire.size(), slot.size());
    if (size > 0 && wire.data() != slot.data()) std::memcpy(slot.data(), wire.data(), size);
    return;
  }
  const std::size_t elements = elements_of(transfer);
  const bool whole = wire.size() == static_cast<std::size_t>(transfer.size.value);
  if (whole && slot.size() >= elements * sizeof(float)) {
    unpack(transfer.type, wire, {first_element(slot), elements});
  }
}

}  // namespace counterflow::exec

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "executor/memory.h"
#include "scheduler/ir/program.h"

// How FP32 elements are packed for the wire and unpacked behind it. Pure functions, the same for
// every backend; rounding is to nearest, ties to even. In memory FP32 is little-endian.
//
// BF16: the upper half of each element. A normal number changes by at most 2^-8 of itself, a
// denormal one by at most 2^-134; what would round beyond the largest BF16, (2 - 2^-7) * 2^127,
// becomes infinite. Infinities stay, NaNs stay NaNs.
//
// FP8: blocks of kFp8Block elements, first the FP32 scales of all blocks, then an E4M3 code an
// element. E4M3 has three bits behind the point from 2^-6 to 448 and steps of 2^-9 below. A scale s
// is the least power of two, 2^-149 or more, with max|block| <= 448 s, so s < max|block| / 224
// unless it is 2^-149, and scaling is exact. With steps of s 2^(e-3) from s 2^e to s 2^(e+1), an
// element v changes by at most
//     |v| / 16             where |v| >= s 2^-6 (and by nothing where s = 2^-149 and |v| < 16 s),
//     s 2^-10 < max|block| 2^-17   below,
// so never by more than max|block| / 16; max over the finite elements. Packing what was unpacked
// gives the same again. Elements that are not finite come out as NaN, the rest of their block is as
// if they were zero; nothing finite becomes infinite.
namespace counterflow::exec {

// `wire` has packed_size() of `values`; the type must be one that packs.
void pack(DataType type, std::span<const float> values, std::span<std::byte> wire);
void unpack(DataType type, std::span<const std::byte> wire, std::span<float> values);

// What elements become on their way: packed and unpacked. Other types change nothing.
void pass_through(DataType type, std::span<float> values);

// The bytes of a message as they leave its slot: those there, or `packed` with them. Nothing if the
// slot is smaller than the message.
[[nodiscard]] std::span<const std::byte> leaving(const Transfer& transfer, Buffer slot,
                                                 std::vector<std::byte>& packed);
// Puts such bytes into the slot they arrive in; what does not fit is left out.
void arriving(const Transfer& transfer, std::span<const std::byte> wire, Buffer slot);

}  // namespace counterflow::exec

#include "executor/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace counterflow::exec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kLeast = std::numeric_limits<float>::denorm_min();

std::vector<float> passed(DataType type, std::vector<float> values) {
  pass_through(type, values);
  return values;
}

// In a block whose scale is 1.
float through_fp8(float value) {
  return passed(DataType::fp8, {value, 448}).front();
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// ---- sizes ------------------------------------------------------------------------------------

TEST(PackedSize, IsTwoBytesOrOneAndAScaleABlock) {
  EXPECT_EQ(packed_size(DataType::bf16, Bytes{400}), Bytes{200});
  EXPECT_EQ(packed_size(DataType::fp8, Bytes{4}), Bytes{5});
  EXPECT_EQ(packed_size(DataType::fp8, Bytes{4 * 128}), Bytes{132});
  EXPECT_EQ(packed_size(DataType::fp8, Bytes{4 * 129}), Bytes{137});
  for (const DataType type : {DataType::bytes, DataType::fp16, DataType::fp32}) {
    EXPECT_EQ(packed_size(type, Bytes{7}), Bytes{7});
    EXPECT_EQ(unpacked_size(type, Bytes{7}), Bytes{7});
  }
}

TEST(PackedSize, CanBeTakenBack) {
  for (const DataType type : {DataType::bf16, DataType::fp8}) {
    std::int64_t before = -1;
    for (std::int64_t elements = 0; elements < 1000; ++elements) {
      const Bytes packed = packed_size(type, Bytes{4 * elements});
      EXPECT_EQ(unpacked_size(type, packed), Bytes{4 * elements});
      // Sizes in between belong to no number of elements.
      for (std::int64_t size = before + 1; size < packed.value; ++size) {
        EXPECT_NE(packed_size(type, unpacked_size(type, Bytes{size})), Bytes{size});
      }
      before = packed.value;
    }
  }
}

// ---- values -----------------------------------------------------------------------------------

TEST(Bf16, RoundsToNearestEven) {
  const float ulp = 0x1p-7F;
  EXPECT_EQ(passed(DataType::bf16, {1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp * 0.51F, -1 - ulp / 2}),
            (std::vector<float>{1, 1 + 2 * ulp, 1 + ulp, -1}));
  EXPECT_EQ(passed(DataType::bf16, {0x1p-133F, 0x1p-134F, 0x1.8p-133F}),
            (std::vector<float>{0x1p-133F, 0, 0x1p-132F}));
}

TEST(Bf16, KeepsWhatIsNotFinite) {
  EXPECT_EQ(passed(DataType::bf16, {kInfinity, -kInfinity}),
            (std::vector<float>{kInfinity, -kInfinity}));
  EXPECT_EQ(passed(DataType::bf16, {0x1.fep127F, kLargest, -kLargest}),
            (std::vector<float>{0x1.fep127F, kInfinity, -kInfinity}));
  // Also one whose payload is all in the lower half.
  for (const std::uint32_t bits : {0x7fc00000U, 0x7f800001U, 0xffffffffU, 0xff800001U}) {
    EXPECT_TRUE(std::isnan(passed(DataType::bf16, {std::bit_cast<float>(bits)}).front()));
  }
  EXPECT_TRUE(same_bits(passed(DataType::bf16, {-0.0F}).front(), -0.0F));
}

TEST(Fp8, HasTheValuesOfE4m3) {
  // By the definition: sign, four bits of exponent with bias 7, three behind the point.
  for (int exponent = 0; exponent < 16; ++exponent) {
    for (int fraction = 0; fraction < 8; ++fraction) {
      if (exponent == 15 && fraction == 7) continue;  // NaN
      const double value =
          exponent == 0 ? fraction * 0x1p-9 : (1 + fraction / 8.0) * std::exp2(exponent - 7);
      const auto element = static_cast<float>(value);
      EXPECT_EQ(through_fp8(element), element);
      EXPECT_TRUE(same_bits(through_fp8(-element), -element));
    }
  }
}

TEST(Fp8, RoundsToNearestEven) {
  EXPECT_EQ(through_fp8(1.0625F), 1.0F);
  EXPECT_EQ(through_fp8(1.1875F), 1.25F);
  EXPECT_EQ(through_fp8(1.07F), 1.125F);
  EXPECT_EQ(through_fp8(0x1p-10F), 0.0F);
  EXPECT_EQ(through_fp8(0x3p-10F), 0x1p-8F);
  EXPECT_EQ(through_fp8(0x1.fp-7F), 0x1p-6F);  // up to the least normal one
  EXPECT_EQ(through_fp8(0x1p-140F), 0.0F);
  EXPECT_TRUE(same_bits(through_fp8(-0x1p-140F), -0.0F));
}

TEST(Fp8, ScalesEachBlockByItself) {
  std::vector<float> values(2 * kFp8Block + 1, 0x1p-20F);
  values[0] = 1000;
  values[static_cast<std::size_t>(2 * kFp8Block)] = 0x1.8p100F;
  const std::vector<float> after = passed(DataType::fp8, values);
  EXPECT_EQ(after[0], 1024);  // steps of 64 from 512
  EXPECT_EQ(after[1], 0);
  EXPECT_EQ(after[static_cast<std::size_t>(kFp8Block)], 0x1p-20F);
  EXPECT_EQ(after.back(), 0x1.8p100F);
}

TEST(Fp8, WhatIsNotFiniteStaysSoAndNothingElseBecomesSo) {
  const auto after = passed(DataType::fp8, {1, kInfinity, 2, -kInfinity, kNan, -3});
  EXPECT_EQ(after[0], 1);
  EXPECT_EQ(after[2], 2);
  EXPECT_EQ(after[5], -3);
  for (const std::size_t i : {1U, 3U, 4U}) EXPECT_TRUE(std::isnan(after[i]));
  for (const float value : passed(DataType::fp8, {kInfinity, kNan, 0})) {
    EXPECT_FALSE(value > 0 || value < 0);
  }
  EXPECT_EQ(passed(DataType::fp8, {kLargest, -kLargest}),
            (std::vector<float>{kLargest, -kLargest}));
}

// ---- the bounds that the header states --------------------------------------------------------

// Blocks of every kind: alike in size, spread over all exponents, denormal, with zeros.
std::vector<float> random_values(std::mt19937& random, std::size_t count) {
  const int centre = static_cast<int>(random() % 277) - 149;
  const int spread = 1 << random() % 9;
  std::vector<float> values(count);
  for (float& value : values) {
    if (random() % 8 == 0) continue;
    const int exponent =
        std::clamp(centre + static_cast<int>(random() % static_cast<unsigned>(spread)), -149, 127);
    const auto fraction = 1 + static_cast<float>(random() % 0x7fffff) * 0x1p-23F;
    value = std::ldexp(random() % 2 == 0 ? fraction : -fraction, exponent);
  }
  return values;
}

TEST(CodecProperty, Bf16ErrorIsAtMost2ToTheMinus8) {
  std::mt19937 random(5);
  for (int n = 0; n < 400; ++n) {
    const std::vector<float> values = random_values(random, 1 + random() % 200);
    const std::vector<float> after = passed(DataType::bf16, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      if (std::fabs(value) >= 0x1.ffp127) {
        EXPECT_EQ(std::fabs(after[i]), kInfinity);
        continue;
      }
      const double error = std::fabs(after[i] - value);
      ASSERT_LE(error, std::fabs(value) >= 0x1p-126 ? std::fabs(value) * 0x1p-8 : 0x1p-134)
          << value;
    }
    EXPECT_EQ(passed(DataType::bf16, after), after);
  }
}

TEST(CodecProperty, Fp8ErrorIsAtMostASixteenthOfTheLargestInTheBlock) {
  std::mt19937 random(6);
  double worst = 0;
  for (int n = 0; n < 800; ++n) {
    const std::vector<float> values = random_values(random, 1 + random() % 300);
    const std::vector<float> after = passed(DataType::fp8, values);
    constexpr auto kBlock = static_cast<std::size_t>(kFp8Block);
    for (std::size_t first = 0; first < values.size(); first += kBlock) {
      const std::size_t last = std::min(first + kBlock, values.size());
      double largest = 0;
      for (std::size_t i = first; i < last; ++i) {
        largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
      }
      for (std::size_t i = first; i < last; ++i) {
        const double value = values[i];
        const double error = std::fabs(after[i] - value);
        ASSERT_LE(error, std::max(std::fabs(value) / 16, largest * 0x1p-17)) << value;
        ASSERT_LE(error, largest / 16);
        if (largest > 0) worst = std::max(worst, error / largest);
      }
    }
    EXPECT_EQ(passed(DataType::fp8, after), after);
  }
  // The bound is no looser than it must be.
  EXPECT_GT(worst, 0.9 / 17);
}

TEST(CodecProperty, DenormalBlocks) {
  for (int k = 0; k < 5000; ++k) {
    const float value = static_cast<float>(k) * kLeast;
    const float after = passed(DataType::fp8, {value}).front();
    ASSERT_LE(std::fabs(after - value), value / 16);
    if (k <= 16) {
      ASSERT_EQ(after, value);
    }
  }
}

// ---- slots ------------------------------------------------------------------------------------

TEST(Codec, PacksWhatLeavesASlotAndUnpacksWhatArrives) {
  std::vector<float> from(130);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i) - 60.3F;
  for (const DataType type : {DataType::bf16, DataType::fp8, DataType::bytes}) {
    Transfer transfer;
    transfer.type = type;
    transfer.size = packed_size(type, Bytes{4 * 130});
    std::vector<std::byte> packed;
    const auto slot = std::as_writable_bytes(std::span(from));
    const auto wire = leaving(transfer, slot, packed);
    EXPECT_EQ(std::ssize(wire), transfer.size.value);
    std::vector<float> to(130, kNan);
    arriving(transfer, wire, std::as_writable_bytes(std::span(to)));
    EXPECT_EQ(to, passed(type, from));
  }
}

TEST(Codec, LeavesASlotThatIsTooSmallAlone) {
  Transfer transfer;
  transfer.type = DataType::bf16;
  transfer.size = Bytes{8};
  std::vector<std::byte> packed;
  EXPECT_TRUE(leaving(transfer, {}, packed).empty());
  std::vector<float> to(3, 7.0F);
  arriving(transfer, std::vector<std::byte>(8), std::as_writable_bytes(std::span(to)));
  arriving(transfer, std::vector<std::byte>(6), std::as_writable_bytes(std::span(to).first(4 - 1)));
  EXPECT_EQ(to, std::vector<float>(3, 7.0F));
}

}  // namespace
}  // namespace counterflow::exec

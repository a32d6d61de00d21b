#include "scheduler/problem/quantity.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/error.h"
#include "scheduler/problem/text.h"

namespace counterflow {
namespace {

template <typename Parse>
std::string refusal(Parse parse) {
  try {
    (void)parse();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Duration, EveryUnit) {
  EXPECT_EQ(parse_duration("7ns").count(), 7);
  EXPECT_EQ(parse_duration("7us").count(), 7'000);
  EXPECT_EQ(parse_duration("18.522ms").count(), 18'522'000);
  EXPECT_EQ(parse_duration("2 s").count(), 2'000'000'000);
}

TEST(Duration, RoundsOnceToTheNearestNanosecond) {
  EXPECT_EQ(parse_duration("0.4ns").count(), 0);
  EXPECT_EQ(parse_duration("0.5ns").count(), 1);
  EXPECT_EQ(parse_duration("1.4999us").count(), 1'500);
  EXPECT_EQ(parse_duration("1.0005us").count(), 1'001);
  EXPECT_EQ(parse_duration("0.0000000005s").count(), 1);
  EXPECT_EQ(parse_duration("0.00000000049999s").count(), 0);
  EXPECT_EQ(parse_duration("1e-50s").count(), 0);
}

TEST(Duration, IsExactBeyondTheDigitsOfADouble) {
  EXPECT_EQ(parse_duration("9007199254740993ns").count(), 9007199254740993);
  EXPECT_EQ(parse_duration("9007199.254740993s").count(), 9007199254740993);
}

TEST(Duration, TakesExponents) {
  EXPECT_EQ(parse_duration("1.5e3us").count(), 1'500'000);
  EXPECT_EQ(parse_duration("2E-3s").count(), 2'000'000);
  EXPECT_EQ(parse_duration("1e+2ns").count(), 100);
}

TEST(Duration, BareNumbersCountInTheGivenUnit) {
  EXPECT_EQ(parse_duration("18.522", "ms").count(), 18'522'000);
  EXPECT_EQ(parse_duration("3us", "ms").count(), 3'000);
  EXPECT_EQ(parse_duration("0").count(), 0);
  EXPECT_EQ(parse_duration("-0").count(), 0);
}

TEST(Duration, LargestIsBelowTwoToThe62) {
  EXPECT_EQ(parse_duration("4611686018427387903ns").count(), 4611686018427387903);
  EXPECT_EQ(
      refusal([] { return parse_duration("4611686018427387904ns"); }),
      "4611686018427387904ns is too large; a duration is below 2^62 ns, for example 18.522ms");
  EXPECT_EQ(refusal([] { return parse_duration("1e999999999s"); }),
            "1e999999999s is too large; a duration is below 2^62 ns, for example 18.522ms");
}

TEST(Duration, RefusesWhatIsNotADecimalNumber) {
  for (const std::string text : {"", "fast", "nan", ".nan", "inf", ".inf", "-inf", "ms", "1.ms",
                                 ".5ms", "+5ms", "007ms", "--3ms", " 3ms"}) {
    const std::string shown_text = text.empty() ? "''" : text;
    EXPECT_EQ(refusal([&] { return parse_duration(text, "ms"); }),
              shown_text +
                  " is not a duration; write a decimal number with a unit, for example 18.522ms");
  }
}

TEST(Duration, RefusesUnknownUnits) {
  EXPECT_EQ(
      refusal([] { return parse_duration("3sec"); }),
      "3sec has the unknown unit sec; did you mean s? The units of a duration are ns, us, ms, "
      "s");
  EXPECT_EQ(refusal([] { return parse_duration("0x10", "ms"); }),
            "0x10 has the unknown unit x10; the units of a duration are ns, us, ms, s");
  EXPECT_EQ(refusal([] { return parse_duration("1_000", "ms"); }),
            "1_000 has the unknown unit _000; the units of a duration are ns, us, ms, s");
}

TEST(Duration, RefusesNegativeAndMissingUnit) {
  EXPECT_EQ(refusal([] { return parse_duration("-3ms"); }),
            "-3ms is negative; a duration is zero or more, for example 18.522ms");
  EXPECT_EQ(refusal([] { return parse_duration("3"); }),
            "3 has no unit; write one of ns, us, ms, s after it, for example 3ms");
}

TEST(Size, EveryUnit) {
  EXPECT_EQ(parse_size("3B").value, 3);
  EXPECT_EQ(parse_size("3KiB").value, 3 * 1024);
  EXPECT_EQ(parse_size("100MiB").value, 104'857'600);
  EXPECT_EQ(parse_size("1.5GiB").value, 1'610'612'736);
  EXPECT_EQ(parse_size("1TiB").value, 1'099'511'627'776);
  EXPECT_EQ(parse_size("3KB").value, 3'000);
  EXPECT_EQ(parse_size("3MB").value, 3'000'000);
  EXPECT_EQ(parse_size("3GB").value, 3'000'000'000);
  EXPECT_EQ(parse_size("3TB").value, 3'000'000'000'000);
  EXPECT_EQ(parse_size("0").value, 0);
}

TEST(Size, RefusesBareNumbersAndOtherUnits) {
  EXPECT_EQ(refusal([] { return parse_size("100"); }),
            "100 has no unit; write one of B, KiB, MiB, GiB, TiB, KB, MB, GB, TB after it, for "
            "example 100MiB");
  EXPECT_EQ(refusal([] { return parse_size("3Mib"); }),
            "3Mib has the unknown unit Mib; did you mean MiB? The units of a size are B, KiB, MiB, "
            "GiB, TiB, KB, MB, GB, TB");
  EXPECT_EQ(refusal([] { return parse_size("-1B"); }),
            "-1B is negative; a size is zero or more, for example 100MiB");
  EXPECT_EQ(refusal([] { return parse_size("5000000TiB"); }),
            "5000000TiB is too large; a size is below 2^62 B, for example 100MiB");
}

TEST(Rate, BytesAndBits) {
  EXPECT_DOUBLE_EQ(parse_rate("50GB/s"), 50e9);
  EXPECT_DOUBLE_EQ(parse_rate("1KiB/s"), 1024);
  EXPECT_DOUBLE_EQ(parse_rate("0.5B/s"), 0.5);
  EXPECT_DOUBLE_EQ(parse_rate("400Gb/s"), 50e9);
  EXPECT_DOUBLE_EQ(parse_rate("8Kb/s"), 1000);
}

TEST(Rate, RefusesZeroAndMissingUnit) {
  EXPECT_EQ(refusal([] { return parse_rate("0GB/s"); }),
            "0GB/s is zero; a rate is above zero, for example 50GB/s; leave it out for no limit");
  // No unit makes it right, so none is asked for.
  for (const std::string zero : {"0", "0.0", "-0"}) {
    EXPECT_EQ(
        refusal([&] { return parse_rate(zero); }),
        zero + " is zero; a rate is above zero, for example 50GB/s; leave it out for no limit");
  }
  EXPECT_EQ(refusal([] { return parse_rate("1e400GB/s"); }),
            "1e400GB/s is too large; a rate is below 1e30 B/s, for example 50GB/s");
  EXPECT_EQ(refusal([] { return parse_rate("-5GB/s"); }),
            "-5GB/s is negative; a rate is above zero, for example 50GB/s");
  EXPECT_EQ(refusal([] { return parse_rate("50"); }),
            "50 has no unit; write one of B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, "
            "Kb/s, Mb/s, Gb/s, Tb/s after it, for example 50GB/s");
}

TEST(Factor, IsADecimalNumber) {
  EXPECT_DOUBLE_EQ(parse_factor("1.7"), 1.7);
  EXPECT_DOUBLE_EQ(parse_factor("0"), 0);
  EXPECT_EQ(refusal([] { return parse_factor("-1"); }),
            "-1 is negative; a factor is from 0 to 1e9, for example 1.7");
  EXPECT_EQ(refusal([] { return parse_factor("2x"); }),
            "2x is not a number; a factor is from 0 to 1e9, for example 1.7");
  EXPECT_EQ(refusal([] { return parse_factor("nan"); }),
            "nan is not a number; a factor is from 0 to 1e9, for example 1.7");
  EXPECT_EQ(refusal([] { return parse_factor("1e10"); }),
            "1e10 is too large; a factor is from 0 to 1e9, for example 1.7");
}

TEST(Integer, IsStrict) {
  EXPECT_EQ(parse_integer("8", 1, 9), 8);
  EXPECT_EQ(parse_integer("-8", -9, 9), -8);
  for (const std::string text : {"8.0", "8e1", "010", "0x8", "1_000", "", "eight", "8 ", "+8"}) {
    const std::string shown_text = text.empty() ? "''" : text;
    EXPECT_EQ(refusal([&] { return parse_integer(text, 1, 9); }),
              shown_text + " is not a whole number; write one from 1 to 9");
  }
  for (const std::string text : {"0", "10", "-1", "99999999999999999999999999"}) {
    EXPECT_EQ(refusal([&] { return parse_integer(text, 1, 9); }),
              text + " is out of range; write a whole number from 1 to 9");
  }
}

TEST(Shown, ShortensAndEscapes) {
  EXPECT_EQ(shown("a\nb"), "a\\x0ab");
  EXPECT_EQ(shown(""), "''");
  EXPECT_EQ(shown("caf\xc3\xa9 \xff"), "caf\xc3\xa9 \\xff");
  EXPECT_EQ(shown(std::string(70, 'x')), std::string(60, 'x') + "...");
}

}  // namespace
}  // namespace counterflow

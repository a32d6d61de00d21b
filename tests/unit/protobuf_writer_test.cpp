#include "report/protobuf_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

// The expected bytes are those of the "Encoding" page of the protobuf documentation.
namespace counterflow {
namespace {

using namespace std::string_view_literals;

TEST(ProtobufWriter, AVarintTakesSevenBitsAByte) {
  ProtobufMessage message;
  message.add(1, 150);
  EXPECT_EQ(message.bytes(), "\x08\x96\x01"sv);
}

TEST(ProtobufWriter, ZeroIsWritten) {
  ProtobufMessage message;
  message.add(1, 0);
  EXPECT_EQ(message.bytes(), "\x08\x00"sv);
}

TEST(ProtobufWriter, ANegativeIntegerTakesTenBytes) {
  ProtobufMessage message;
  message.add(1, static_cast<std::uint64_t>(std::int64_t{-2}));
  EXPECT_EQ(message.bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
}

TEST(ProtobufWriter, TextHasItsLengthBeforeIt) {
  ProtobufMessage message;
  message.add(2, "testing");
  EXPECT_EQ(message.bytes(), "\x12\x07testing"sv);
}

TEST(ProtobufWriter, AMessageInAMessageIsItsBytes) {
  ProtobufMessage inner;
  inner.add(1, 150);
  ProtobufMessage outer;
  outer.add(3, inner);
  EXPECT_EQ(outer.bytes(), "\x1a\x03\x08\x96\x01"sv);
}

TEST(ProtobufWriter, Fixed64HasItsLowestByteFirst) {
  ProtobufMessage message;
  message.add_fixed64(1, 0x0807060504030201);
  EXPECT_EQ(message.bytes(), "\x09\x01\x02\x03\x04\x05\x06\x07\x08"sv);
}

TEST(ProtobufWriter, AFieldNumberAboveFifteenTakesTwoBytes) {
  ProtobufMessage message;
  message.add(16, 1);
  EXPECT_EQ(message.bytes(), "\x80\x01\x01"sv);
}

}  // namespace
}  // namespace counterflow

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace counterflow {

// A message in the protobuf wire format: fields are appended in any order, each with the number its
// .proto file gives it. Whole numbers are varints, seven bits a byte, so small ones take one byte;
// negative ones take ten, as the format has it for int64.
class ProtobufMessage {
 public:
  void add(std::uint32_t field, std::uint64_t value) {
    append_key(field, Wire::varint);
    append_varint(value);
  }
  void add(std::uint32_t field, std::string_view text) {
    append_key(field, Wire::length_delimited);
    append_varint(text.size());
    bytes_ += text;
  }
  void add(std::uint32_t field, const ProtobufMessage& message) { add(field, message.bytes()); }
  // A field declared fixed64: eight bytes, the lowest first.
  void add_fixed64(std::uint32_t field, std::uint64_t value) {
    append_key(field, Wire::fixed64);
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_ += static_cast<char>((value >> shift) & 0xff);
    }
  }

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, length_delimited = 2 };

  void append_key(std::uint32_t field, Wire wire) {
    append_varint((std::uint64_t{field} << 3) | static_cast<std::uint64_t>(wire));
  }
  void append_varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>((value & 0x7f) | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace counterflow

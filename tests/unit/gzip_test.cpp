#include "report/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <string>

namespace counterflow {
namespace {

std::string gunzip(const std::string& packed, std::size_t size) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  std::string out(size + 1, '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(Gzip, GivesBackWhatItPacked) {
  std::string noise;
  std::uint64_t state = 1;
  for (int i = 0; i < 3'000'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    noise += static_cast<char>(state >> 56);
  }
  for (const std::string& data :
       {std::string(), std::string("a"), std::string(5'000'000, 'x'), noise}) {
    EXPECT_EQ(gunzip(gzip(data), data.size()), data);
  }
}

TEST(Gzip, HoldsNoTimeAndNoName) {
  const std::string packed = gzip("data");
  EXPECT_EQ(packed.substr(0, 8), std::string("\x1f\x8b\x08\0\0\0\0\0", 8));
}

}  // namespace
}  // namespace counterflow

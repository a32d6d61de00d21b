#include "report/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace counterflow {

std::string gzip(std::string_view data) {
  constexpr int kGzipWrapper = 16;
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipWrapper,
                   kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    // zlib counts input and output in 32 bits, so both are handed over in pieces.
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    if (stream.avail_in == 0) {
      const std::size_t piece = std::min(kPiece, data.size());
      stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
      stream.avail_in = static_cast<uInt>(piece);
      data.remove_prefix(piece);
    }
    const std::size_t written = out.size();
    out.resize(written + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(kPiece);
    status = deflate(&stream, data.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace counterflow

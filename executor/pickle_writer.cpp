#include "executor/pickle_writer.h"

#include <limits>
#include <utility>

namespace counterflow::exec {

PickleWriter::PickleWriter() : out_("\x80\x02") {}

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out_ += static_cast<char>(value & 0xffU);
    value >>= 8U;
  }
}

PickleWriter& PickleWriter::null() {
  out_ += 'N';
  return *this;
}

PickleWriter& PickleWriter::boolean(bool value) {
  out_ += value ? '\x88' : '\x89';  // NEWTRUE, NEWFALSE
  return *this;
}

PickleWriter& PickleWriter::integer(std::int64_t value) {
  using Small = std::numeric_limits<std::int32_t>;
  if (value >= Small::min() && value <= Small::max()) {
    out_ += 'J';  // BININT
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    out_ += "\x8a\x08";  // LONG1 of eight bytes
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
  return *this;
}

PickleWriter& PickleWriter::text(std::string_view value) {
  const auto number = static_cast<std::uint32_t>(texts_.size());
  const auto [known, is_new] = texts_.try_emplace(std::string(value), number);
  if (is_new) {
    out_ += 'X';  // BINUNICODE
    little_endian(value.size(), 4);
    out_ += value;
  }
  out_ += is_new ? 'r' : 'j';  // LONG_BINPUT, LONG_BINGET
  little_endian(known->second, 4);
  return *this;
}

PickleWriter& PickleWriter::open_dict() {
  out_ += "}(";  // EMPTY_DICT, MARK
  return *this;
}

PickleWriter& PickleWriter::close_dict() {
  out_ += 'u';  // SETITEMS
  return *this;
}

PickleWriter& PickleWriter::open_list() {
  out_ += "](";  // EMPTY_LIST, MARK
  return *this;
}

PickleWriter& PickleWriter::close_list() {
  out_ += 'e';  // APPENDS
  return *this;
}

PickleWriter& PickleWriter::open_tuple() {
  out_ += '(';  // MARK
  return *this;
}

PickleWriter& PickleWriter::close_tuple() {
  out_ += 't';  // TUPLE
  return *this;
}

std::string PickleWriter::finish() {
  out_ += '.';  // STOP
  return std::move(out_);
}

}  // namespace counterflow::exec

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace counterflow {

// A Python pickle of protocol 2 to 5 that holds nothing but dicts with texts as keys, lists, tuples
// (which become arrays), texts, numbers, booleans and None. Nothing is ever called or imported: an
// opcode that would is refused by its name, as are values that contain themselves, nest deeper than
// 64, or are too much once written out: more than 16 values or 256 bytes of text a byte of the file
// (of 64 KiB at least), or than ten million or 256 MiB. Throws InputError with the byte where it
// happens. `file` is for messages. O(size), and of what is written out.
[[nodiscard]] nlohmann::json parse_pickle(std::string_view bytes, const std::string& file);

}  // namespace counterflow

#pragma once

#include <array>
#include <string>
#include <string_view>

#include "scheduler/ir/program.h"

namespace counterflow {

// Reads program.json back, exactly: parse_program_json(program_json(p)) == p. Throws InputError on
// anything malformed: types, names, ranges outside their tables, another version, a hash that is
// not the program's. `file` is for messages.
[[nodiscard]] Program parse_program_json(std::string_view text,
                                         const std::string& file = "program.json");

// The columns of the tables in program.json, as the file itself names them. Tables point into each
// other by index; -1 is none, and a run of entries is its first index and its count.
namespace program_columns {
inline constexpr std::array<std::string_view, 9> kernels = {
    "op",           "paired_op",   "replica",         "paired_replica", "stage",
    "paired_stage", "duration_ns", "allocates_bytes", "frees_bytes"};
inline constexpr std::array<std::string_view, 12> instructions = {
    "kind",    "stream",     "communicator", "kernel",      "op",   "paired",
    "records", "generation", "waits",        "waits_count", "body", "body_count"};
inline constexpr std::array<std::string_view, 2> waits = {"event", "generation"};
inline constexpr std::array<std::string_view, 13> transfers = {
    "is_send", "type", "peer",       "sequence", "payload", "replica", "from",
    "to",      "part", "microbatch", "slot",     "version", "bytes"};
inline constexpr std::array<std::string_view, 5> collectives = {"kind", "sequence", "slot",
                                                                "version", "bytes"};
inline constexpr std::array<std::string_view, 3> accesses = {"slot", "version", "is_write"};
inline constexpr std::array<std::string_view, 3> slots = {"pool", "offset_bytes", "bytes"};
}  // namespace program_columns

}  // namespace counterflow

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ir/units.h"

// Flight records: what each rank has posted of transfers and collectives, as PyTorch's flight
// recorder and `counterflow run` dump it when a run stops.
namespace counterflow {

struct FlightGroup {
  std::string name;
  std::vector<Rank> members;  // ascending
  friend auto operator<=>(const FlightGroup&, const FlightGroup&) = default;
};

struct FlightEntry {
  enum class Kind : std::uint8_t { send, receive, collective };
  Kind kind = Kind::collective;
  std::uint32_t group = 0;    // into FlightDump::groups
  std::string name;           // "send", "all_reduce"
  Rank source = 0;            // of a message, ranks of the whole run
  Rank destination = 0;       //
  std::int64_t sequence = 0;  // of a collective in its group
  std::string sizes;          // of what is sent, or of both sides, as JSON, to compare and to show
  std::string types;          //
  std::int64_t bytes = -1;    // of all tensors; below zero: of a type that is not known
  bool completed = false;
  std::int64_t created_ns = 0;
  std::string frame;                         // the innermost stack frame: "0SEND_F1 (...)"
  std::optional<std::int64_t> communicator;  // of a Program, in our own records
};

// What only our own records say.
struct FlightNotes {
  std::string program_hash;
  Rank failed_rank = 0;
  std::string failed_op;
  std::string reason;
  std::optional<Rank> culprit;
  std::vector<std::string> running;    // ops
  std::vector<FlightEntry> not_begun;  // the first of them
};

struct FlightDump {
  Rank rank = 0;
  std::string file;
  bool from_the_beginning = true;  // nothing has been overwritten
  std::vector<FlightGroup> groups;
  std::vector<FlightEntry> entries;  // as they were posted
  std::vector<Rank> known_ranks;     // members of any group
  std::optional<FlightNotes> notes;
};

// The rank that a file is of by its name, which ends in it, but for ".json" or ".pickle": nothing
// for another file.
[[nodiscard]] std::optional<Rank> rank_of_flight_file(std::string_view name);

// Reads a dump, JSON or a pickle without code, of version 2.x. What stands in a coalesced group has
// the state of the group. Throws InputError with file, path, value and rule.
[[nodiscard]] FlightDump parse_flight_dump(std::string_view bytes, const std::string& file,
                                           Rank rank);

}  // namespace counterflow

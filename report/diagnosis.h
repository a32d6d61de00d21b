#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/flight_dump.h"
#include "scheduler/ir/program.h"

namespace counterflow {

// One thing that is wrong, as flight records show it.
struct Finding {
  enum class Kind : std::uint8_t {
    recorded,         // the run itself said so when it stopped
    order_differs,    // a rank does not do what the Program says next
    differs,          // the two ends of a message, or members of a collective, do not agree
    does_not_arrive,  // both ends are posted
    never_posted,     // somebody waits for what a rank has not posted, and nothing holds that back
    cycle,            // each waits for another
    no_record,        // of a rank there is none
  };
  Kind kind = Kind::recorded;
  std::optional<Rank> culprit{};
  std::string op{};  // of the culprit, where it is known
  std::string reason{};
};
[[nodiscard]] std::string_view name(Finding::Kind kind);

struct Diagnosis {
  std::vector<Rank> ranks;        // with a record
  std::vector<Rank> missing;      // named by the others, without one
  std::vector<Finding> findings;  // what says most first; the first with a culprit is the verdict
  [[nodiscard]] const Finding* verdict() const;  // none: nothing is wrong
  [[nodiscard]] std::string op() const;          // of the culprit, by whichever finding names it
};

// Who is at fault, and why. Messages match first in, first out on each channel of a process group,
// collectives by their number; a rank whose first entries were overwritten is matched by what is
// still open. A Program tells what holds what back, which of two ends deviates, and in which order
// messages should have come; without one, an open receive posted ahead counts as holding back what
// its rank has not posted. Throws InputError where the records are of another program.
// O(entries log entries), and of the program for each rank on the chain.
[[nodiscard]] Diagnosis diagnose(const std::vector<FlightDump>& dumps, const Program* program);

// A few lines for a terminal; one object.
[[nodiscard]] std::string to_text(const Diagnosis& diagnosis);
[[nodiscard]] std::string to_json(const Diagnosis& diagnosis);

}  // namespace counterflow

#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/ir/units.h"
#include "scheduler/problem/topology.h"

namespace counterflow {

struct Config;

// What goes wrong during one run, and when.
struct Scenario {
  struct OneRank {
    Rank rank;
  };
  struct OneLink {  // the messages of an ordered pair of ranks
    Rank from;
    Rank to;
  };
  struct OneShared {  // a link of the topology
    SharedLinkId link;
  };
  using Place = std::variant<OneRank, OneLink, OneShared>;
  // From `from` to `until` everything there takes `factor` times as long; without a factor nothing
  // moves at all. Without an end it lasts for ever.
  struct Slowdown {
    Place what = OneRank{0};
    std::optional<double> factor;
    Time from{0};
    std::optional<Time> until;
  };
  // The rank does nothing from then on, and what was on its way to or from it is lost.
  struct Failure {
    Rank rank = 0;
    Time at{0};
  };

  std::vector<Slowdown> slowdowns;  // outages too
  std::vector<Failure> failures;    // at most one a rank
};

// Reads a scenario file for the machine of this config. Throws InputError: unknown keys, ranks and
// links that there are not, units, ranges, an end before its begin.
[[nodiscard]] Scenario read_scenario(const std::string& path, const Config& config);
// The same from memory; `file` is for messages.
[[nodiscard]] Scenario parse_scenario(std::string_view yaml, const std::string& file,
                                      const Config& config);

}  // namespace counterflow

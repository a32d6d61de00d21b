#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "report/flight_dump.h"
#include "scheduler/graph/prerequisites.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"

namespace counterflow {

// What a Program says about the messages in flight records.
class ExpectedMessages {
 public:
  explicit ExpectedMessages(const Program& program);

  // A message of a rank in the Program.
  struct Place {
    std::uint32_t instruction = 0;
    std::uint32_t transfer = 0;
  };
  // The n-th message, sent or received by `rank`, on the channel of an entry; steps follow each
  // other. None where the Program has no such channel, or several that the entry may mean.
  [[nodiscard]] std::optional<Place> place(Rank rank, const FlightEntry& entry, bool sends,
                                           std::size_t n) const;
  // Can `second` not begin before `first`, which has begun, has ended? By streams, events and what
  // NCCL does one after the other. O(instructions of the rank).
  [[nodiscard]] bool holds_back(Rank rank, std::uint32_t first, std::uint32_t second) const;
  // Of all messages with `peer`, in issue order, whether they are sent.
  [[nodiscard]] std::vector<bool> directions(Rank rank, Rank peer) const;

  [[nodiscard]] const Program& program() const { return program_; }

 private:
  // (rank, communicator, peer, sends)
  using Channel = std::tuple<Rank, std::int64_t, Rank, bool>;

  [[nodiscard]] std::vector<std::uint32_t> followers(std::size_t rank) const;

  const Program& program_;
  const Prerequisites prerequisites_;
  std::map<Channel, std::vector<Place>> places_;
};

}  // namespace counterflow

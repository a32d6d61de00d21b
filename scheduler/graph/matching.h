#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow {

// Which send meets which receive. A channel (communicator, source, destination) is first in, first
// out: its k-th send in issue order meets its k-th receive, whatever they carry.
class Matching {
 public:
  // One end of a message: a transfer of a rank, by its index in RankProgram::transfers.
  struct End {
    std::uint32_t rank = kNone;
    std::uint32_t transfer = kNone;
    [[nodiscard]] bool exists() const { return transfer != kNone; }
    friend bool operator==(const End&, const End&) = default;
  };

  // O(transfers).
  explicit Matching(const Program& program);

  // The other end of a transfer; it does not exist if the channel has no counterpart left.
  [[nodiscard]] End partner(std::size_t rank, std::uint32_t transfer) const {
    return partners_[rank][transfer];
  }
  // The instruction a transfer belongs to.
  [[nodiscard]] std::uint32_t instruction(std::size_t rank, std::uint32_t transfer) const {
    return owners_[rank][transfer];
  }
  // How many messages of its channel, in this direction, the rank issues before it.
  [[nodiscard]] std::uint32_t sequence(std::size_t rank, std::uint32_t transfer) const {
    return sequences_[rank][transfer];
  }

 private:
  std::vector<std::vector<std::uint32_t>> owners_;     // [rank][transfer]
  std::vector<std::vector<std::uint32_t>> sequences_;  // [rank][transfer]
  std::vector<std::vector<End>> partners_;             // [rank][transfer]
};

}  // namespace counterflow

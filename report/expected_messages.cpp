#include "report/expected_messages.h"

#include <span>

namespace counterflow {
ExpectedMessages::ExpectedMessages(const Program& program)
    : program_(program), prerequisites_(program, ExecutionModel::nccl()) {
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const RankProgram& rank = program.ranks[r];
    for (std::uint32_t i = 0; i < rank.instructions.size(); ++i) {
      const Instruction& what = rank.instructions[i];
      if (what.kind != InstructionKind::transfer) continue;
      for (std::uint32_t k = what.body.first; k < what.body.first + what.body.count; ++k) {
        const Transfer& each = rank.transfers[k];
        places_[{static_cast<Rank>(r), what.communicator, each.peer, each.is_send}].push_back(
            {i, k});
      }
    }
  }
}

std::optional<ExpectedMessages::Place> ExpectedMessages::place(Rank rank, const FlightEntry& entry,
                                                               bool sends, std::size_t n) const {
  const Rank peer = sends ? entry.destination : entry.source;
  const std::vector<Place>* found = nullptr;
  for (const auto& [channel, places] : places_) {
    const auto& [of, communicator, with, is_send] = channel;
    if (of != rank || with != peer || is_send != sends) continue;
    if (entry.communicator && *entry.communicator != communicator) continue;
    if (found != nullptr) return std::nullopt;
    found = &places;
  }
  if (found == nullptr) return std::nullopt;
  return (*found)[n % found->size()];
}

// The next instruction on the stream of each.
std::vector<std::uint32_t> ExpectedMessages::followers(std::size_t r) const {
  const RankProgram& rank = program_.ranks[r];
  std::vector<std::uint32_t> next(rank.instructions.size(), kNone);
  std::vector<std::uint32_t> last(rank.streams.size(), kNone);
  for (std::uint32_t i = 0; i < next.size(); ++i) {
    std::uint32_t& before = last[rank.instructions[i].stream];
    if (before != kNone) next[before] = i;
    before = i;
  }
  return next;
}

bool ExpectedMessages::holds_back(Rank rank, std::uint32_t first, std::uint32_t second) const {
  const auto r = static_cast<std::size_t>(rank);
  const std::vector<std::uint32_t> next = followers(r);
  std::vector<bool> seen(next.size());
  std::vector<std::uint32_t> open;
  const auto add = [&](std::uint32_t i) {
    if (i == kNone || seen[i]) return;
    seen[i] = true;
    open.push_back(i);
  };
  const auto add_all = [&](std::span<const Prerequisites::Index> list) {
    for (const Prerequisites::Index each : list) add(prerequisites_.instruction(each));
  };
  add_all(prerequisites_.after_end(prerequisites_.index(r, first)));
  // None of these can begin; a stream issues in order.
  while (!open.empty() && !seen[second]) {
    const std::uint32_t at = open.back();
    open.pop_back();
    add_all(prerequisites_.after_begin(prerequisites_.index(r, at)));
    add_all(prerequisites_.after_end(prerequisites_.index(r, at)));
    add(next[at]);
  }
  return seen[second];
}

std::vector<bool> ExpectedMessages::directions(Rank rank, Rank peer) const {
  std::vector<bool> sends;
  const RankProgram& list = program_.ranks[static_cast<std::size_t>(rank)];
  for (const Instruction& what : list.instructions) {
    for (const Transfer& each : list.transfers_of(what)) {
      if (static_cast<Rank>(each.peer) == peer) sends.push_back(each.is_send);
    }
  }
  return sends;
}

}  // namespace counterflow

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>

#include "scheduler/ir/program.h"
#include "tests/support/random_problems.h"

// Small random damage to the waits, order and slots of one rank.
namespace counterflow::testing::rank_mutations {

// Changes one thing; false if this rank has nothing of the kind.
using RankMutation = bool (*)(RankProgram& rank, std::mt19937_64& random);

inline bool drop_wait(RankProgram& rank, std::mt19937_64& random) {
  if (rank.waits.empty()) return false;
  for (;;) {
    const auto i = draw(random, 0, std::ssize(rank.instructions) - 1);
    Range& waits = rank.instructions[static_cast<std::size_t>(i)].waits;
    if (waits.count == 0) continue;
    --waits.count;
    if (draw(random, 0, 1) == 0) ++waits.first;
    return true;
  }
}

inline bool swap_neighbours(RankProgram& rank, std::mt19937_64& random) {
  if (rank.instructions.size() < 2) return false;
  const auto i = static_cast<std::size_t>(draw(random, 0, std::ssize(rank.instructions) - 2));
  std::swap(rank.instructions[i], rank.instructions[i + 1]);
  return true;
}

inline bool move_later(RankProgram& rank, std::mt19937_64& random) {
  const auto size = std::ssize(rank.instructions);
  if (size < 2) return false;
  const auto from = draw(random, 0, size - 2);
  const auto to = draw(random, from + 1, size - 1);
  const auto begin = rank.instructions.begin();
  std::rotate(begin + from, begin + from + 1, begin + to + 1);
  return true;
}

inline bool share_slot(RankProgram& rank, std::mt19937_64& random) {
  if (rank.accesses.empty() || rank.slots.size() < 2) return false;
  const auto k = static_cast<std::size_t>(draw(random, 0, std::ssize(rank.accesses) - 1));
  const auto slot = static_cast<std::uint32_t>(draw(random, 0, std::ssize(rank.slots) - 1));
  if (rank.accesses[k].slot == slot) return false;
  rank.accesses[k].slot = slot;
  return true;
}

inline bool redirect_transfer(RankProgram& rank, std::mt19937_64& random) {
  if (rank.transfers.empty() || rank.slots.size() < 2) return false;
  const auto k = static_cast<std::size_t>(draw(random, 0, std::ssize(rank.transfers) - 1));
  const auto slot = static_cast<std::uint32_t>(draw(random, 0, std::ssize(rank.slots) - 1));
  if (rank.transfers[k].slot == slot) return false;
  rank.transfers[k].slot = slot;
  return true;
}

inline bool other_version(RankProgram& rank, std::mt19937_64& random) {
  if (rank.accesses.empty()) return false;
  const auto k = static_cast<std::size_t>(draw(random, 0, std::ssize(rank.accesses) - 1));
  rank.accesses[k].version = rank.accesses[k].version + 1U;
  return true;
}

}  // namespace counterflow::testing::rank_mutations

namespace counterflow::testing {

struct NamedRankMutation {
  const char* name;
  rank_mutations::RankMutation mutate;
};
inline constexpr NamedRankMutation kRankMutations[] = {
    {"drop a wait", rank_mutations::drop_wait},
    {"swap neighbours", rank_mutations::swap_neighbours},
    {"move later", rank_mutations::move_later},
    {"share a slot", rank_mutations::share_slot},
    {"redirect a transfer", rank_mutations::redirect_transfer},
    {"another version", rank_mutations::other_version},
};

}  // namespace counterflow::testing

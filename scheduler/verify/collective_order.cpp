#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/ir/instruction_text.h"
#include "scheduler/verify/rules.h"

// Collectives have no tags either: the members of a communicator must call the same ones in the
// same order, and ranks that share several communicators must go through those in the same order.
namespace counterflow::rules {
namespace {

struct Call {
  std::uint32_t index = 0;  // of the instruction
  CommunicatorId communicator = kNoCommunicator;
  std::uint32_t number = 0;  // on its communicator
  const Collective* collective = nullptr;
};
using Calls = std::vector<Call>;

std::string text(const Call& call) {
  return called(*call.collective, call.number, call.communicator);
}

class CollectiveOrder {
 public:
  CollectiveOrder(const Program& program, Diagnostics& out) : program_(program), out_(out) {
    for (const RankProgram& rank : program.ranks) calls_.push_back(calls_of(rank));
  }

  void check_numbers() {
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
      for (const Call& call : calls_[rank]) {
        if (call.collective->sequence == call.number) continue;
        report(rank, call.index,
               fmt::format("is collective {} of communicator {} by its place, but numbered {}",
                           call.number, call.communicator, call.collective->sequence));
      }
    }
  }

  // Every member calls the same collectives of a communicator.
  void check_members() {
    for (CommunicatorId id = 0; id < program_.communicators.size(); ++id) {
      std::optional<std::pair<std::size_t, Calls>> first;
      for (const Rank member : program_.communicators[id].members) {
        const auto rank = static_cast<std::size_t>(member);
        if (rank >= calls_.size()) continue;
        Calls calls = only(calls_[rank], [id](const Call& c) { return c.communicator == id; });
        if (first) {
          compare(id, *first, rank, calls);
        } else {
          first.emplace(rank, std::move(calls));
        }
      }
    }
  }

  // Of all communicators two ranks share, both go through the calls in the same order. Only where
  // the calls of each communicator agree is there an order to compare.
  void check_pairs() {
    for (std::size_t b = 1; b < calls_.size(); ++b) {
      for (std::size_t a = 0; a < b && !check_pair(a, b); ++a) {
      }
    }
  }

 private:
  static Calls calls_of(const RankProgram& rank) {
    Calls calls;
    if (rank.collectives.empty()) return calls;
    std::vector<std::uint32_t> next;
    for (std::uint32_t i = 0; i < rank.instructions.size(); ++i) {
      const Instruction& instruction = rank.instructions[i];
      if (instruction.kind != InstructionKind::collective) continue;
      const CommunicatorId id = instruction.communicator;
      if (id >= next.size()) next.resize(id + std::size_t{1});
      calls.push_back({i, id, next[id]++, &rank.collectives[instruction.body.first]});
    }
    return calls;
  }

  template <typename Wanted>
  static Calls only(const Calls& calls, Wanted wanted) {
    Calls result;
    std::ranges::copy_if(calls, std::back_inserter(result), wanted);
    return result;
  }

  void compare(CommunicatorId id, const std::pair<std::size_t, Calls>& first, std::size_t rank,
               const Calls& calls) {
    const auto [theirs, ours] =
        std::ranges::mismatch(first.second, calls, [](const Call& a, const Call& b) {
          return a.collective->kind == b.collective->kind &&
                 a.collective->size == b.collective->size;
        });
    if (theirs != first.second.end() && ours != calls.end()) {
      report(rank, ours->index,
             fmt::format("is {} with {} B, which meets {} with {} B on rank {}", text(*ours),
                         ours->collective->size.value, text(*theirs),
                         theirs->collective->size.value, first.first));
    } else if (first.second.size() != calls.size()) {
      report(rank, std::nullopt,
             fmt::format("calls {} collectives of communicator {}, rank {} calls {}", calls.size(),
                         id, first.first, first.second.size()));
    }
  }

  [[nodiscard]] bool is_member(std::size_t rank, CommunicatorId id) const {
    return std::ranges::binary_search(program_.communicators[id].members, static_cast<Rank>(rank));
  }

  // Reports the first difference and whether there is one.
  bool check_pair(std::size_t a, std::size_t b) {
    const Calls first =
        only(calls_[a], [&](const Call& c) { return is_member(b, c.communicator); });
    const Calls second =
        only(calls_[b], [&](const Call& c) { return is_member(a, c.communicator); });
    const auto [at_a, at_b] =
        std::ranges::mismatch(first, second, {}, &Call::communicator, &Call::communicator);
    if (at_a == first.end() || at_b == second.end()) return false;
    report(b, at_b->index,
           fmt::format("calls {} where rank {} calls {}: ranks that share communicators must go "
                       "through their collectives in one order",
                       text(*at_b), a, text(*at_a)));
    return true;
  }

  void report(std::size_t rank, std::optional<std::int64_t> index, std::string message) {
    out_.push_back({.rule = "collective",
                    .rank = static_cast<Rank>(rank),
                    .index = index,
                    .op = {},
                    .message = std::move(message)});
  }

  const Program& program_;
  Diagnostics& out_;
  std::vector<Calls> calls_;  // [rank]
};

}  // namespace

void collective_order(const Program& program, Diagnostics& out) {
  const bool any = std::ranges::any_of(
      program.ranks, [](const RankProgram& rank) { return !rank.collectives.empty(); });
  if (!any) return;
  CollectiveOrder order(program, out);
  const std::size_t before = out.size();
  order.check_numbers();
  order.check_members();
  if (out.size() == before) order.check_pairs();
}

}  // namespace counterflow::rules

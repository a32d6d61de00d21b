#include "executor/exchange.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "executor/codec.h"
#include "executor/progress.h"

namespace counterflow::exec {
namespace {

// As accesses name them.
constexpr std::uint32_t kMostVersion = 0x7fffffffU;

Bytes size_of_slot(const RankProgram& rank, std::uint32_t slot) {
  return slot == kNone ? Bytes{0} : rank.slots[slot].size;
}

}  // namespace

Exchange::Exchange(const Program& program, const Matching& matching, Semantics semantics,
                   std::vector<RankMemory>& memories, Posting posting)
    : program_(program),
      buffered_(semantics == Semantics::buffered),
      one_thread_(posting == Posting::one_thread),
      memories_(memories) {
  std::size_t size = 0;
  for (const RankProgram& rank : program.ranks) {
    bases_.push_back(static_cast<Id>(size));
    size += rank.transfers.size();
  }
  ends_.reserve(size);
  if (buffered_) buffers_.resize(size);
  std::uint32_t first_instruction = 0;
  for (std::uint32_t r = 0; r < program.ranks.size(); ++r) {
    const RankProgram& rank = program.ranks[r];
    for (std::uint32_t k = 0; k < rank.transfers.size(); ++k) {
      const Transfer& each = rank.transfers[k];
      End& end = ends_.emplace_back();
      const std::uint32_t instruction = matching.instruction(r, k);
      end.instruction = first_instruction + instruction;
      end.is_alone = instruction != kNone && rank.instructions[instruction].body.count == 1;
      end.expects = (each.version & kMostVersion) - (each.is_send ? 0U : 1U);
      end.held = each.slot == kNone ? nullptr : &memories[r].version(each.slot);
      end.rank = static_cast<std::uint16_t>(r);
      end.side = each.is_send ? kSend : kReceive;
      const Matching::End other = matching.partner(r, k);
      if (!other.exists()) continue;
      end.send = end.receive = id(other.rank, other.transfer);
      (each.is_send ? end.send : end.receive) = id(r, k);
      const RankProgram& there = program.ranks[other.rank];
      const Transfer& match = there.transfers[other.transfer];
      end.alike =
          each.payload == match.payload && each.size == match.size && each.type == match.type;
      end.has_bytes =
          size_of_slot(rank, each.slot) > Bytes{0} && size_of_slot(there, match.slot) > Bytes{0};
    }
    first_instruction += static_cast<std::uint32_t>(rank.instructions.size());
  }
}

void Exchange::keep_copy(const End& send) {
  std::vector<std::byte>& left = buffers_[id(send.rank, transfer(send))];
  const std::span<const std::byte> bytes = leaving(what(send), data(send), left);
  if (bytes.data() != left.data()) left.assign(bytes.begin(), bytes.end());
}

void Exchange::copy(const End& send, const End& receive) {
  if (buffered_) {
    // Only what is on its way is held: all messages of a step are more than a machine may have.
    const std::vector<std::byte> left = std::move(buffers_[id(send.rank, transfer(send))]);
    return arriving(what(receive), left, data(receive));
  }
  std::vector<std::byte> packed;
  arriving(what(receive), leaving(what(send), data(send), packed), data(receive));
}

Buffer Exchange::data(const End& end) {
  const std::uint32_t slot = what(end).slot;
  return slot == kNone ? Buffer() : memories_[end.rank].buffer(slot);
}

std::string Exchange::mismatch(const End& send, const End& receive) const {
  const Transfer& sent = what(send);
  const Transfer& expected = what(receive);
  if (sent.payload != expected.payload) {
    return fmt::format("rank {} sends {}, rank {} receives {}", send.rank, describe(sent.payload),
                       receive.rank, describe(expected.payload));
  }
  return fmt::format("{}: rank {} sends {} B of {}, rank {} receives {} B of {}",
                     describe(sent.payload), send.rank, sent.size.value, name(sent.type),
                     receive.rank, expected.size.value, name(expected.type));
}

std::string Exchange::complaint(const End& end) const {
  const Access access{.slot = what(end).slot,
                      .version = what(end).version & kMostVersion,
                      .is_write = end.side == kSend ? 0U : 1U};
  return fmt::format("rank {} {} {}: {}", end.rank, end.side == kSend ? "sends" : "receives",
                     describe(what(end).payload), memories_[end.rank].complaint(access));
}

}  // namespace counterflow::exec

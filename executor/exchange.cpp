#include "executor/exchange.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "executor/codec.h"
#include "executor/progress.h"

namespace counterflow::exec {

Exchange::Exchange(const Program& program, const Matching& matching, Semantics semantics,
                   std::vector<RankMemory>& memories, Posting posting)
    : program_(program),
      matching_(matching),
      buffered_(semantics == Semantics::buffered),
      one_thread_(posting == Posting::one_thread),
      memories_(memories) {
  for (const RankProgram& rank : program.ranks) {
    posted_.push_back(std::make_unique<Posted[]>(rank.transfers.size()));
    if (buffered_) buffers_.emplace_back(rank.transfers.size());
  }
}

void Exchange::clear() {
  for (std::size_t rank = 0; rank < posted_.size(); ++rank) {
    for (std::size_t k = 0; k < program_.ranks[rank].transfers.size(); ++k) {
      posted_[rank][k].store(0, std::memory_order_relaxed);
    }
  }
}

Exchange::Outcome Exchange::post(std::uint32_t rank, std::uint32_t transfer) {
  const Matching::End mine{rank, transfer};
  const Matching::End other = matching_.partner(rank, transfer);
  const bool send = this->transfer(mine).is_send;
  // A buffered send does not know that nobody receives; anything else waits for ever.
  if (!other.exists()) return {.mine = send && buffered_};
  return send ? post_send(mine, other) : post_receive(mine, other);
}

bool Exchange::meets(Matching::End send, std::uint8_t mine, std::uint8_t other) {
  Posted& posted = posted_[send.rank][send.transfer];
  if (!one_thread_) return (posted.fetch_or(mine, std::memory_order_acq_rel) & other) != 0;
  const std::uint8_t before = posted.load(std::memory_order_relaxed);
  posted.store(before | mine, std::memory_order_relaxed);
  return (before & other) != 0;
}

Exchange::Outcome Exchange::post_send(Matching::End send, Matching::End receive) {
  Outcome outcome;
  if (buffered_) {
    std::vector<std::byte>& left = buffers_[send.rank][send.transfer];
    const std::span<const std::byte> bytes = leaving(transfer(send), data(send), left);
    if (bytes.data() != left.data()) left.assign(bytes.begin(), bytes.end());
    if (!use(send, outcome)) return outcome;
    outcome.mine = true;
  }
  if (!meets(send, kSent, kReceiving)) return outcome;
  if (!buffered_ && !use(send, outcome)) return outcome;
  deliver(send, receive, outcome);
  outcome.mine = outcome.other = true;
  return outcome;
}

Exchange::Outcome Exchange::post_receive(Matching::End receive, Matching::End send) {
  if (!meets(send, kReceiving, kSent)) return {};
  Outcome outcome{.mine = true, .other = !buffered_};
  if (!buffered_ && !use(send, outcome)) return outcome;
  deliver(send, receive, outcome);
  return outcome;
}

void Exchange::deliver(Matching::End send, Matching::End receive, Outcome& outcome) {
  const Transfer& sent = transfer(send);
  const Transfer& expected = transfer(receive);
  if (sent.payload != expected.payload || sent.size != expected.size ||
      sent.type != expected.type) {
    outcome.fault = Fault{mismatch(send, receive), receive};
    return;
  }
  if (!use(receive, outcome)) return;
  if (buffered_) return arriving(expected, buffers_[send.rank][send.transfer], data(receive));
  std::vector<std::byte> packed;
  arriving(expected, leaving(sent, data(send), packed), data(receive));
}

std::string Exchange::mismatch(Matching::End send, Matching::End receive) const {
  const Transfer& sent = transfer(send);
  const Transfer& expected = transfer(receive);
  if (sent.payload != expected.payload) {
    return fmt::format("rank {} sends {}, rank {} receives {}", send.rank, describe(sent.payload),
                       receive.rank, describe(expected.payload));
  }
  return fmt::format("{}: rank {} sends {} B of {}, rank {} receives {} B of {}",
                     describe(sent.payload), send.rank, sent.size.value, name(sent.type),
                     receive.rank, expected.size.value, name(expected.type));
}

bool Exchange::use(Matching::End end, Outcome& outcome) {
  const Transfer& what = transfer(end);
  if (what.slot == kNone) return true;
  const Access access{
      .slot = what.slot, .version = what.version & 0x7fffffffU, .is_write = what.is_send ? 0U : 1U};
  RankMemory& memory = memories_[end.rank];
  if (memory.finds(access)) {
    memory.wrote(access);
    return true;
  }
  outcome.fault =
      Fault{fmt::format("rank {} {} {}: {}", end.rank, what.is_send ? "sends" : "receives",
                        describe(what.payload), memory.complaint(access)),
            end};
  return false;
}

Buffer Exchange::data(Matching::End end) {
  const Transfer& what = transfer(end);
  return what.slot == kNone ? Buffer() : memories_[end.rank].buffer(what.slot);
}

}  // namespace counterflow::exec

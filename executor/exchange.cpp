#include "executor/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/progress.h"

namespace counterflow::exec {

Exchange::Exchange(const Program& program, const Matching& matching, Semantics semantics,
                   std::vector<RankMemory>& memories)
    : program_(program),
      matching_(matching),
      buffered_(semantics == Semantics::buffered),
      memories_(memories) {
  for (const RankProgram& rank : program.ranks) {
    messages_.push_back(std::make_unique<Message[]>(rank.transfers.size()));
  }
}

void Exchange::clear() {
  for (std::size_t rank = 0; rank < messages_.size(); ++rank) {
    for (std::size_t k = 0; k < program_.ranks[rank].transfers.size(); ++k) {
      messages_[rank][k].posted.store(0, std::memory_order_relaxed);
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

Exchange::Outcome Exchange::post_send(Matching::End send, Matching::End receive) {
  Message& message = this->message(send);
  Outcome outcome;
  if (buffered_) {
    const Buffer bytes = data(send);
    message.copy.assign(bytes.begin(), bytes.end());
    use(send, outcome);
    outcome.mine = true;
  }
  const bool waiting =
      (message.posted.fetch_or(kSent, std::memory_order_acq_rel) & kReceiving) != 0;
  if (!waiting) return outcome;
  if (!buffered_) use(send, outcome);
  deliver(send, receive, data(send), outcome);
  outcome.mine = outcome.other = true;
  return outcome;
}

Exchange::Outcome Exchange::post_receive(Matching::End receive, Matching::End send) {
  Message& message = this->message(send);
  const bool there = (message.posted.fetch_or(kReceiving, std::memory_order_acq_rel) & kSent) != 0;
  if (!there) return {};
  Outcome outcome{.mine = true, .other = !buffered_};
  if (!buffered_) use(send, outcome);
  deliver(send, receive, buffered_ ? Buffer(message.copy) : data(send), outcome);
  return outcome;
}

void Exchange::deliver(Matching::End send, Matching::End receive, Buffer from, Outcome& outcome) {
  if (!outcome.fault.empty()) return;
  outcome.fault = mismatch(send, receive);
  outcome.at = receive;
  if (outcome.fault.empty()) use(receive, outcome);
  const Buffer to = data(receive);
  const std::size_t size = std::min(from.size(), to.size());
  if (outcome.fault.empty() && size > 0) std::memcpy(to.data(), from.data(), size);
}

std::string Exchange::mismatch(Matching::End send, Matching::End receive) const {
  const Transfer& sent = transfer(send);
  const Transfer& expected = transfer(receive);
  if (sent.payload != expected.payload) {
    return fmt::format("rank {} sends {}, rank {} receives {}", send.rank, describe(sent.payload),
                       receive.rank, describe(expected.payload));
  }
  if (sent.size != expected.size || sent.type != expected.type) {
    return fmt::format("{}: rank {} sends {} B of {}, rank {} receives {} B of {}",
                       describe(sent.payload), send.rank, sent.size.value, name(sent.type),
                       receive.rank, expected.size.value, name(expected.type));
  }
  return {};
}

void Exchange::use(Matching::End end, Outcome& outcome) {
  const Transfer& what = transfer(end);
  if (what.slot == kNone) return;
  const Access access{
      .slot = what.slot, .version = what.version & 0x7fffffffU, .is_write = what.is_send ? 0U : 1U};
  RankMemory& memory = memories_[end.rank];
  if (memory.finds(access)) return memory.wrote(access);
  outcome.fault = fmt::format("rank {} {} {}: {}", end.rank, what.is_send ? "sends" : "receives",
                              describe(what.payload), memory.complaint(access));
  outcome.at = end;
}

Buffer Exchange::data(Matching::End end) {
  const Transfer& what = transfer(end);
  return what.slot == kNone ? Buffer() : memories_[end.rank].buffer(what.slot);
}

}  // namespace counterflow::exec

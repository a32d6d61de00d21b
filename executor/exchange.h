#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/memory.h"
#include "executor/prefetch.h"
#include "scheduler/graph/matching.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// Who posts: any thread, or always the same one, which is cheaper.
enum class Posting : std::uint8_t { any_thread, one_thread };

// How messages pass between ranks of one process. Both ends post; whoever comes second copies the
// bytes from slot to slot, packed and unpacked as they travel, after comparing what the two ends
// say they carry and the versions of the slots. A buffered send leaves a copy, packed, and goes.
// Nobody ever blocks here.
//
// What a program says of its messages does not change, so it is looked up once: to post is to read
// two short records.
class Exchange {
 public:
  // A transfer among those of all ranks, rank after rank.
  using Id = std::uint32_t;
  // One end of a message.
  struct End {
    Id send = kNone;  // both ends of the message; none: one of them does not exist
    Id receive = kNone;
    std::uint32_t instruction = 0;  // among those of all ranks, rank after rank
    std::uint32_t expects = 0;      // the version its slot must hold; a receive makes the next one
    std::uint32_t* held = nullptr;  // the version its slot holds; none: it has no slot
    std::uint16_t rank = 0;
    std::uint8_t side = kSend;
    std::uint8_t here = 0;   // of a send: the sides that have come and have not met
    bool alike = false;      // both ends say the same of what is carried
    bool has_bytes = false;  // something is to be copied
    bool is_alone = false;   // its instruction posts nothing else
  };
  static constexpr std::uint8_t kSend = 1;
  static constexpr std::uint8_t kReceive = 2;

  // Everything given must outlive it.
  Exchange(const Program& program, const Matching& matching, Semantics semantics,
           std::vector<RankMemory>& memories, Posting posting);

  [[nodiscard]] Id id(std::uint32_t rank, std::uint32_t transfer) const {
    return bases_[rank] + transfer;
  }
  // It will soon be posted.
  void fetch(Id id) const { prefetch(&ends_[id], 0); }
  // Which transfer of its rank an end is.
  [[nodiscard]] std::uint32_t transfer(const End& end) const {
    return static_cast<std::uint32_t>(&end - ends_.data()) - bases_[end.rank];
  }

  // One end of a message is there. Tells whoever listens `transfer_ended(const End&)` of each end
  // that has ended by this, the other one first, or `transfer_failed(const End&, std::string)` what
  // is wrong: a message that is not what its receiver expects is wrong there. A message that has
  // passed is forgotten: the same transfers may be posted again in the next step.
  template <typename Listener>
  void post(Id id, Listener& listener);

 private:
  // Notes that one side of a message is there; was the other?
  [[nodiscard]] bool meets(std::uint8_t side, End& send) const;
  // False if the slot does not hold what the transfer means.
  [[nodiscard]] static bool reads(const End& send) {
    return send.held == nullptr || *send.held == send.expects;
  }
  [[nodiscard]] static bool writes(const End& receive) {
    if (receive.held == nullptr) return true;
    if (*receive.held != receive.expects) return false;
    ++*receive.held;
    return true;
  }
  void keep_copy(const End& send);
  void copy(const End& send, const End& receive);
  [[nodiscard]] Buffer data(const End& end);
  // How the two ends of a message that do not match differ, in words.
  [[nodiscard]] std::string mismatch(const End& send, const End& receive) const;
  // What is wrong with the slot of a transfer, in words.
  [[nodiscard]] std::string complaint(const End& end) const;
  [[nodiscard]] const Transfer& what(const End& end) const {
    return program_.ranks[end.rank].transfers[transfer(end)];
  }

  static constexpr std::size_t kEndsAhead = 8;

  const Program& program_;
  bool buffered_;
  bool one_thread_;
  std::vector<RankMemory>& memories_;
  std::vector<Id> bases_;                        // [rank] of its first transfer
  std::vector<End> ends_;                        // [id]
  std::vector<std::vector<std::byte>> buffers_;  // [id] of sends, where they are buffered
};

static_assert(sizeof(Exchange::End) == 32);

inline bool Exchange::meets(std::uint8_t side, End& send) const {
  constexpr std::uint8_t kBoth = kSend | kReceive;
  if (one_thread_) {
    const bool met = (send.here | side) == kBoth;
    send.here = met ? 0 : side;
    return met;
  }
  std::atomic_ref<std::uint8_t> here(send.here);
  if ((here.fetch_or(side, std::memory_order_acq_rel) | side) != kBoth) return false;
  here.store(0, std::memory_order_relaxed);
  return true;
}

// Inlined into the loop of whoever runs instructions.
template <typename Listener>
[[gnu::always_inline]] inline void Exchange::post(Id id, Listener& listener) {
  const End& mine = ends_[id];
  prefetch(&mine, kEndsAhead);
  // A buffered send does not wait for its receive, nor know whether there is one.
  const bool leaves = buffered_ && mine.side == kSend;
  if (mine.send == kNone) {
    if (leaves) listener.transfer_ended(mine);
    return;
  }
  End& send = ends_[mine.send];
  const End& receive = ends_[mine.receive];
  if (leaves) {
    keep_copy(send);
    if (!reads(send)) return listener.transfer_failed(send, complaint(send));
  }
  if (!meets(mine.side, send)) {
    if (leaves) listener.transfer_ended(mine);
    return;
  }
  if (!buffered_ && !reads(send)) return listener.transfer_failed(send, complaint(send));
  if (!send.alike) return listener.transfer_failed(receive, mismatch(send, receive));
  if (!writes(receive)) return listener.transfer_failed(receive, complaint(receive));
  if (send.has_bytes) copy(send, receive);
  if (!buffered_ || leaves) listener.transfer_ended(&mine == &send ? receive : send);
  listener.transfer_ended(mine);
}

}  // namespace counterflow::exec

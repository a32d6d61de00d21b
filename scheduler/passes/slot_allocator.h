#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow {

// Hands out the buffer slots of one rank: interval colouring in the order of first use. A slot is
// taken again by a value of the same pool and size once the last reader of the one before it has
// ended, earliest free first, so there are never more slots than values alive at once.
class SlotAllocator {
 public:
  // What a rank knows of a slot that holds a value.
  struct Taken {
    std::uint32_t slot = kNone;
    std::uint32_t version = 0;
    std::uint32_t last_user = kNone;  // the instruction that used the slot last; kNone: it is new
  };

  // `reuse` false: every value gets a slot of its own.
  explicit SlotAllocator(bool reuse) : reuse_(reuse) {}

  // A slot for a value that is first written at `at`. O(log slots).
  [[nodiscard]] Taken take(BufferPool pool, Bytes size, Time at);
  // The value is dead: its last reader, instruction `user`, ends at `at`. O(log slots).
  void give_back(std::uint32_t slot, Time at, std::uint32_t user);

  // The next version of a slot: one more value was written to it.
  [[nodiscard]] std::uint32_t write(std::uint32_t slot) { return ++versions_[slot]; }
  [[nodiscard]] std::uint32_t version(std::uint32_t slot) const { return versions_[slot]; }

  // The slots, laid out one after the other in their pools.
  [[nodiscard]] std::vector<BufferSlot> finish() &&;

 private:
  struct Free {
    Time since{0};
    std::uint32_t slot = 0;
    std::uint32_t user = 0;
    bool operator>(const Free& other) const {
      return since != other.since ? since > other.since : slot > other.slot;
    }
  };
  using Queue = std::priority_queue<Free, std::vector<Free>, std::greater<>>;
  using Kind = std::pair<BufferPool, std::int64_t>;

  bool reuse_;
  std::vector<BufferSlot> slots_;
  std::vector<std::uint32_t> versions_;  // [slot] of the value it holds; 0: none yet
  std::map<Kind, Queue> free_;
};

}  // namespace counterflow

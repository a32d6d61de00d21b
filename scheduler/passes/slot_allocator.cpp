#include "scheduler/passes/slot_allocator.h"

#include <array>
#include <cstddef>

namespace counterflow {
namespace {

// Every slot begins on a multiple of this: what vector loads and network cards like best.
constexpr std::int64_t kAlignment = 256;

}  // namespace

SlotAllocator::Taken SlotAllocator::take(BufferPool pool, Bytes size, Time at) {
  Queue& free = free_[{pool, size.value}];
  if (reuse_ && !free.empty() && free.top().since <= at) {
    const Free reused = free.top();
    free.pop();
    return {reused.slot, write(reused.slot), reused.user};
  }
  const auto slot = static_cast<std::uint32_t>(slots_.size());
  slots_.push_back({.pool = pool, .offset = Bytes{0}, .size = size});
  versions_.push_back(0);
  return {slot, write(slot), kNone};
}

void SlotAllocator::give_back(std::uint32_t slot, Time at, std::uint32_t user) {
  const BufferSlot& what = slots_[slot];
  free_[{what.pool, what.size.value}].push({at, slot, user});
}

std::vector<BufferSlot> SlotAllocator::finish() && {
  std::array<std::int64_t, kBufferPools> ends{};
  for (BufferSlot& slot : slots_) {
    std::int64_t& end = ends[static_cast<std::size_t>(slot.pool)];
    slot.offset = Bytes{end};
    end += (slot.size.value + kAlignment - 1) / kAlignment * kAlignment;
  }
  return std::move(slots_);
}

}  // namespace counterflow

#include "executor/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "executor/out_of_memory.h"
#include "scheduler/error.h"

namespace counterflow::exec {

RankMemory::RankMemory(const RankProgram& program)
    : slots_(program.slots), versions_(program.slots.size(), 0) {
  std::array<std::size_t, kBufferPools> sizes{};
  for (const BufferSlot& slot : slots_) {
    std::size_t& size = sizes[static_cast<std::size_t>(slot.pool)];
    size = std::max(size, static_cast<std::size_t>((slot.offset + slot.size).value));
  }
  for (std::size_t pool = 0; pool < kBufferPools; ++pool) {
    try {
      pools_[pool] = std::make_unique_for_overwrite<std::byte[]>(sizes[pool]);
    } catch (const std::bad_alloc&) {
      throw EnvironmentError(
          out_of_memory(fmt::format("the {} bytes of a rank's {} buffers", sizes[pool],
                                    name(static_cast<BufferPool>(pool)))));
    }
  }
}

void RankMemory::clear() {
  std::ranges::fill(versions_, 0U);
}

std::string RankMemory::complaint(const Access& access) const {
  return fmt::format("{} version {} of slot {} ({}), which holds version {}",
                     access.is_write ? "writes" : "reads", std::uint32_t{access.version},
                     access.slot, name(pool(access.slot)), versions_[access.slot]);
}

}  // namespace counterflow::exec

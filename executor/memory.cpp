#include "executor/memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace counterflow::exec {

RankMemory::RankMemory(const RankProgram& program)
    : slots_(program.slots), versions_(program.slots.size(), 0) {
  for (const BufferSlot& slot : slots_) {
    auto& pool = pools_[static_cast<std::size_t>(slot.pool)];
    const auto end = static_cast<std::size_t>((slot.offset + slot.size).value);
    if (pool.size() < end) pool.resize(end);
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

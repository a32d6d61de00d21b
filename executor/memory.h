#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow::exec {

using Buffer = std::span<std::byte>;

// The buffer slots of one rank, in one block of memory a pool, and which version each holds. What
// is never written takes no physical memory.
class RankMemory {
 public:
  // Allocates; throws std::bad_alloc.
  explicit RankMemory(const RankProgram& program);

  [[nodiscard]] Buffer buffer(std::uint32_t slot) {
    const BufferSlot& what = slots_[slot];
    std::byte* pool = pools_[static_cast<std::size_t>(what.pool)].get();
    return {pool + what.offset.value, static_cast<std::size_t>(what.size.value)};
  }
  [[nodiscard]] BufferPool pool(std::uint32_t slot) const { return slots_[slot].pool; }

  // A new step: no slot holds anything.
  void clear();
  // Does an instruction find the versions it names? A read must find its version, a write the one
  // before its own. What is wrong, in words; nothing if all is well.
  [[nodiscard]] bool finds(const Access& access) const {
    return versions_[access.slot] + access.is_write == access.version;
  }
  [[nodiscard]] std::string complaint(const Access& access) const;
  // The instruction is done: what it wrote is there.
  void wrote(const Access& access) {
    if (access.is_write) versions_[access.slot] = access.version;
  }

 private:
  std::span<const BufferSlot> slots_;
  std::array<std::unique_ptr<std::byte[]>, kBufferPools> pools_;
  std::vector<std::uint32_t> versions_;  // [slot]
};

}  // namespace counterflow::exec

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
  // Allocates. Throws EnvironmentError, in words, where that cannot be.
  explicit RankMemory(const RankProgram& program);

  [[nodiscard]] Buffer buffer(std::uint32_t slot) {
    const BufferSlot& what = slots_[slot];
    std::byte* pool = pools_[static_cast<std::size_t>(what.pool)].get();
    return {pool + what.offset.value, static_cast<std::size_t>(what.size.value)};
  }
  [[nodiscard]] BufferPool pool(std::uint32_t slot) const { return slots_[slot].pool; }

  // Which version a slot holds; stays where it is.
  [[nodiscard]] std::uint32_t& version(std::uint32_t slot) { return versions_[slot]; }

  // A new step: no slot holds anything.
  void clear();
  // An instruction uses a slot: a read must find its version, a write the one before its own, and
  // makes its own. False if it does not find it; nothing changes then.
  [[nodiscard]] bool use(const Access& access) {
    std::uint32_t& held = versions_[access.slot];
    if (access.is_write == 0) return held == access.version;
    if (held + 1 != access.version) return false;
    held = access.version;
    return true;
  }
  // What is wrong with a use that does not find its version, in words.
  [[nodiscard]] std::string complaint(const Access& access) const;

 private:
  std::span<const BufferSlot> slots_;
  std::array<std::unique_ptr<std::byte[]>, kBufferPools> pools_;
  std::vector<std::uint32_t> versions_;  // [slot]
};

}  // namespace counterflow::exec

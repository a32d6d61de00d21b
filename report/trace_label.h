#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/ir/program.h"

namespace counterflow {

struct TraceArgument {
  std::string_view key;
  std::int64_t value = 0;
};

// What a trace says of an instruction.
struct TraceLabel {
  std::string name;           // "0F3", "0F3&7B1", "1SEND_F2 and 2 more"
  std::string_view category;  // "forward", "send activation", "all_reduce"

  [[nodiscard]] std::span<const TraceArgument> arguments() const {
    return std::span(arguments_).first(count_);
  }
  void add(std::string_view key, std::int64_t value) { arguments_[count_++] = {key, value}; }

 private:
  std::array<TraceArgument, 5> arguments_{};  // the most a fused pair of the second replica has
  std::size_t count_ = 0;
};

// The label of an instruction of `rank`.
[[nodiscard]] TraceLabel trace_label(const RankProgram& rank, const Instruction& instruction);

}  // namespace counterflow

#include "simulator/memory.h"

#include <algorithm>
#include <tuple>

namespace counterflow {
namespace {

struct Change {
  Time at{0};
  bool allocates = false;  // after what is freed at the same instant
  Bytes amount;
  [[nodiscard]] auto order() const { return std::tie(at, allocates); }
};

std::vector<Change> changes_of(const Program& program, const RankProgram& rank,
                               const std::vector<Interval>& times) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    const Instruction& instruction = rank.instructions[i];
    if (instruction.kind != InstructionKind::run || times[i].end < Time{0}) continue;
    const Kernel& kernel = program.kernels[instruction.kernel];
    if (kernel.allocates.value != 0) {
      changes.push_back({times[i].begin, true, kernel.allocates});
    }
    if (kernel.frees.value != 0) {
      changes.push_back({times[i].end, false, Bytes{} - kernel.frees});
    }
  }
  const auto before = [](const Change& a, const Change& b) { return a.order() < b.order(); };
  if (!std::is_sorted(changes.begin(), changes.end(), before)) {
    std::stable_sort(changes.begin(), changes.end(), before);
  }
  return changes;
}

}  // namespace

std::vector<MemorySample> memory_over_time(const Program& program, const RankProgram& rank,
                                           const std::vector<Interval>& times) {
  std::vector<MemorySample> samples{{Time{0}, rank.static_memory}};
  Bytes held = rank.static_memory;
  for (const Change& change : changes_of(program, rank, times)) {
    held += change.amount;
    if (samples.back().at == change.at) {
      samples.back().held = held;
    } else if (samples.back().held != held) {
      samples.push_back({change.at, held});
    }
  }
  return samples;
}

}  // namespace counterflow

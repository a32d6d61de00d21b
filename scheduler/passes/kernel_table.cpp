#include "scheduler/passes/kernel_table.h"

#include <utility>

namespace counterflow {
namespace {

std::uint64_t identity(const Kernel& k) {
  return static_cast<std::uint64_t>(k.kind) | static_cast<std::uint64_t>(k.paired_kind) << 8U |
         static_cast<std::uint64_t>(k.replica) << 16U |
         static_cast<std::uint64_t>(k.paired_replica) << 24U |
         static_cast<std::uint64_t>(k.stage) << 32U |
         static_cast<std::uint64_t>(k.paired_stage) << 48U;
}

}  // namespace

KernelTable::KernelTable(const Problem& problem)
    : problem_(problem), replicas_(static_cast<std::size_t>(problem.placement.replicas())) {
  if (problem.costs.uniform()) {
    single_.assign(2 * kOpKinds * replicas_ * static_cast<std::size_t>(problem.stages()), kNone);
  }
}

Kernel KernelTable::make(const Slot& slot) const {
  const auto& [first, second] = slot;
  Kernel kernel{.kind = first.kind,
                .paired_kind = second.kind,
                .replica = first.replica,
                .paired_replica = second.replica,
                .stage = first.stage,
                .paired_stage = second.stage};
  if (!is_compute(first.kind)) return kernel;  // a stage action: no cost known
  kernel.duration = problem_.duration(slot);
  kernel.allocates = problem_.allocated(first);
  kernel.frees = problem_.freed(first);
  if (slot.is_pair()) kernel.frees += problem_.freed(second);
  return kernel;
}

std::uint32_t KernelTable::intern(const Kernel& kernel) {
  const Key key{identity(kernel), kernel.duration.count(), kernel.allocates.value,
                kernel.frees.value};
  const auto [entry, fresh] = known_.try_emplace(key, static_cast<std::uint32_t>(kernels_.size()));
  if (fresh) kernels_.push_back(kernel);
  return entry->second;
}

std::uint32_t KernelTable::of(const Slot& slot) {
  if (single_.empty() || slot.is_pair()) return intern(make(slot));
  // What has no backward frees its activation at once.
  const Op& op = slot.first;
  const bool trains = !has_microbatch(op.kind) || problem_.trains(op.microbatch);
  const std::size_t kind = (trains ? kOpKinds : 0) + static_cast<std::size_t>(op.kind);
  const std::size_t index =
      (kind * replicas_ + op.replica) * static_cast<std::size_t>(problem_.stages()) + op.stage;
  std::uint32_t& id = single_[index];
  if (id == kNone) id = intern(make(slot));
  return id;
}

}  // namespace counterflow

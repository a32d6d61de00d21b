#include "executor/compute.h"

#include <algorithm>
#include <vector>

namespace counterflow::exec {
namespace {

// Where the accesses of the second op of a fused pair begin: behind what the first, a forward,
// saves.
std::size_t split(const ComputeCall& call) {
  if (call.paired.kind == OpKind::none) return call.accesses.size();
  const auto saves = std::ranges::find_if(call.accesses, [&](const Access& access) {
    return call.memory->pool(access.slot) == BufferPool::saved;
  });
  return static_cast<std::size_t>(saves - call.accesses.begin()) + 1;
}

OpBuffers sorted(const ComputeCall& call, std::span<const Access> accesses) {
  OpBuffers buffers;
  for (const Access& access : accesses) {
    const Buffer buffer = call.memory->buffer(access.slot);
    switch (call.memory->pool(access.slot)) {
      case BufferPool::activations:
      case BufferPool::gradients:
        if (access.is_write) {
          buffers.outputs.push_back(buffer);
        } else if (call.memory->pool(access.slot) == BufferPool::activations) {
          buffers.inputs.push_back(buffer);
        } else {
          buffers.output_gradients.push_back(buffer);
        }
        break;
      case BufferPool::saved:
        buffers.saved = buffer;
        break;
      case BufferPool::accumulators:
        buffers.sums.push_back(buffer);
        break;
      case BufferPool::parameters:
        buffers.parameters.push_back(buffer);
        break;
    }
  }
  return buffers;
}

}  // namespace

OpBuffers ComputeCall::buffers() const {
  return sorted(*this, accesses.first(split(*this)));
}

OpBuffers ComputeCall::paired_buffers() const {
  return sorted(*this, accesses.subspan(split(*this)));
}

}  // namespace counterflow::exec

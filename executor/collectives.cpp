#include "executor/collectives.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "scheduler/graph/part.h"

namespace counterflow::exec {
namespace {

constexpr std::size_t kElement = sizeof(float);

std::vector<std::byte> sum_of(std::span<const Buffer> buffers) {
  std::vector<std::byte> sum(buffers.front().begin(), buffers.front().end());
  for (const Buffer& buffer : buffers.subspan(1)) add(sum, buffer);
  return sum;
}

void exchange_parts(std::span<const Buffer> buffers) {
  const std::size_t n = buffers.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = j + 1; k < n; ++k) {
      const Buffer a = part(buffers[j], k, n);
      const Buffer b = part(buffers[k], j, n);
      std::swap_ranges(a.begin(), a.begin() + std::min(std::ssize(a), std::ssize(b)), b.begin());
    }
  }
}

}  // namespace

Buffer part(Buffer whole, std::size_t k, std::size_t n) {
  const Part part = part_of(Bytes{std::ssize(whole)}, k, n);
  return whole.subspan(static_cast<std::size_t>(part.first.value),
                       static_cast<std::size_t>(part.size.value));
}

void add(Buffer sum, std::span<const std::byte> other) {
  for (std::size_t at = 0; at + kElement <= sum.size(); at += kElement) {
    float a = 0;
    float b = 0;
    std::memcpy(&a, sum.data() + at, kElement);
    std::memcpy(&b, other.data() + at, kElement);
    a += b;
    std::memcpy(sum.data() + at, &a, kElement);
  }
}

void perform(CollectiveKind kind, std::span<const Buffer> buffers) {
  const std::size_t n = buffers.size();
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter: {
      std::vector<std::byte> sum = sum_of(buffers);
      for (std::size_t k = 0; k < n; ++k) {
        if (kind == CollectiveKind::all_reduce) {
          std::ranges::copy(sum, buffers[k].begin());
        } else {
          std::ranges::copy(part(sum, k, n), part(buffers[k], k, n).begin());
        }
      }
      break;
    }
    case CollectiveKind::all_gather:
      for (std::size_t k = 0; k < n; ++k) {
        for (std::size_t j = 0; j < n; ++j) {
          if (j != k) std::ranges::copy(part(buffers[k], k, n), part(buffers[j], k, n).begin());
        }
      }
      break;
    case CollectiveKind::all_to_all:
      exchange_parts(buffers);
      break;
    case CollectiveKind::broadcast:
      for (const Buffer& buffer : buffers.subspan(1)) {
        std::ranges::copy(buffers.front(), buffer.begin());
      }
      break;
    case CollectiveKind::barrier:
      break;
  }
}

}  // namespace counterflow::exec

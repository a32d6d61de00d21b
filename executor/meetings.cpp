#include "executor/meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace counterflow::exec {
namespace {

constexpr std::size_t kElement = sizeof(float);

// Part k of n, cut between elements; of what is no row of them, between bytes.
Buffer part(Buffer whole, std::size_t k, std::size_t n) {
  const std::size_t unit = whole.size() % kElement == 0 ? kElement : 1;
  const std::size_t units = whole.size() / unit;
  const std::size_t begin = units * k / n * unit;
  return whole.subspan(begin, units * (k + 1) / n * unit - begin);
}

std::vector<std::byte> sum_of(std::span<const Buffer> buffers) {
  std::vector<std::byte> sum(buffers.front().begin(), buffers.front().end());
  for (const Buffer& buffer : buffers.subspan(1)) {
    for (std::size_t at = 0; at + kElement <= sum.size(); at += kElement) {
      float a = 0;
      float b = 0;
      std::memcpy(&a, sum.data() + at, kElement);
      std::memcpy(&b, buffer.data() + at, kElement);
      a += b;
      std::memcpy(sum.data() + at, &a, kElement);
    }
  }
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

Meetings::Meetings(const Program& program, std::vector<RankMemory>& memories)
    : program_(program),
      memories_(memories),
      groups_(collective_groups(program)),
      arrived_(std::make_unique<std::atomic<std::size_t>[]>(groups_.size())) {
  for (const RankProgram& rank : program.ranks) group_of_.emplace_back(rank.collectives.size());
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    for (const Member& member : groups_[g].members) {
      const RankProgram& rank = program.ranks[member.rank];
      group_of_[member.rank][rank.instructions[member.instruction].body.first] = g;
    }
  }
}

void Meetings::clear() {
  for (std::size_t g = 0; g < groups_.size(); ++g) arrived_[g].store(0, std::memory_order_relaxed);
}

Meetings::Outcome Meetings::arrive(std::uint32_t rank, std::uint32_t instruction) {
  const std::uint32_t g =
      group_of_[rank][program_.ranks[rank].instructions[instruction].body.first];
  const CollectiveGroup& group = groups_[g];
  const std::size_t before = arrived_[g].fetch_add(1, std::memory_order_acq_rel);
  if (!group.possible || before + 1 < group.members.size()) return {.ended = {}, .at = {}};
  std::vector<Buffer> buffers;
  for (const Member& member : group.members) {
    if (std::string fault = use(member); !fault.empty()) {
      return {.ended = {}, .fault = std::move(fault), .at = member};
    }
    buffers.push_back(data(member));
  }
  perform(group.body.front().kind, buffers);
  return {.ended = group.members, .at = {}};
}

const Collective& Meetings::collective(const Member& member) const {
  const RankProgram& rank = program_.ranks[member.rank];
  return rank.collectives[rank.instructions[member.instruction].body.first];
}

std::string Meetings::use(const Member& member) {
  const Collective& what = collective(member);
  if (what.slot == kNone) return {};
  const Access access{.slot = what.slot, .version = what.version & 0x7fffffffU, .is_write = 1};
  RankMemory& memory = memories_[member.rank];
  if (!memory.finds(access)) return memory.complaint(access);
  memory.wrote(access);
  return {};
}

Buffer Meetings::data(const Member& member) {
  const Collective& what = collective(member);
  if (what.slot == kNone) return {};
  return memories_[member.rank].buffer(what.slot).first(static_cast<std::size_t>(what.size.value));
}

}  // namespace counterflow::exec

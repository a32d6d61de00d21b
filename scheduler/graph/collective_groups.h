#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow {

// The instructions that meet in one collective: on each communicator the k-th of every member.
struct CollectiveGroup {
  struct Member {
    std::uint32_t rank = 0;
    std::uint32_t instruction = 0;
  };
  std::vector<Rank> communicator;    // its members
  std::span<const Collective> body;  // what is run; that of the first member
  std::vector<Member> members;       // those that have a k-th, by rank
  // Do all members of the communicator come, and for the same? If not, none of them ever starts.
  bool possible = true;
};

// By communicator, then in order. O(instructions); nothing is allocated where there are none. The
// program must outlive the groups.
[[nodiscard]] std::vector<CollectiveGroup> collective_groups(const Program& program);

// Do these ask for the same, buffers apart?
[[nodiscard]] bool same_work(std::span<const Collective> a, std::span<const Collective> b);

}  // namespace counterflow

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/memory.h"
#include "scheduler/graph/collective_groups.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// How the ranks of one process do collectives: whoever comes last does the work for all, in the
// slots the members name. Any thread may arrive; nobody ever blocks here.
class Meetings {
 public:
  using Member = CollectiveGroup::Member;
  struct Outcome {
    std::span<const Member> ended;  // all members, once the last one has come
    std::string fault{};            // in words, and at whom
    Member at;
  };

  // Everything given must outlive it.
  Meetings(const Program& program, std::vector<RankMemory>& memories);

  // A new step: nobody is there.
  void clear();
  [[nodiscard]] Outcome arrive(std::uint32_t rank, std::uint32_t instruction);

 private:
  [[nodiscard]] const Collective& collective(const Member& member) const;
  [[nodiscard]] std::string use(const Member& member);
  [[nodiscard]] Buffer data(const Member& member);

  const Program& program_;
  std::vector<RankMemory>& memories_;
  std::vector<CollectiveGroup> groups_;
  std::unique_ptr<std::atomic<std::size_t>[]> arrived_;  // [group]
  std::vector<std::vector<std::uint32_t>> group_of_;     // [rank][collective]
};

}  // namespace counterflow::exec

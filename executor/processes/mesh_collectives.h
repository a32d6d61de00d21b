#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/memory.h"
#include "executor/processes/mesh.h"
#include "executor/progress.h"
#include "executor/transport.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// The part of one rank in collectives, over a mesh. Whoever comes to one sends every other member
// its share: the part of its vector that this one needs, even if that is nothing, so that nobody
// ends before all have begun. With all shares a member knows its own part of the result; of an
// all-reduce it then sends that part of the sum to all. So an all-reduce of b bytes among n sends
// and receives 2 b (n - 1) / n on each rank, as a ring does, in two steps and in any order, and
// still every sum runs by ascending rank: the bits are those of perform().
//
// Shares that come before this rank does are kept. What a share or sum belongs to, its size, its
// bytes and its place are compared where it arrives, and the versions of the slots.
class MeshCollectives {
 public:
  // Everything given must outlive it.
  MeshCollectives(const Program& program, RankMemory& memory, Mesh& mesh);

  // Before any other rank may begin the step.
  void begin_step(int step, Transport::Listener& listener);
  // This rank comes to a collective. One that not every member calls, or not for the same, never
  // ends.
  void arrive(std::uint32_t instruction);
  // For whoever listens to the mesh: a frame `share` or `sum`.
  void received(int peer, const Frame& frame, std::span<const std::byte> body);

  // Of an instruction, the first thing that has not come; none if it is no collective that has
  // begun and not ended, or if nothing is missing.
  [[nodiscard]] std::optional<Lack> lacks(std::uint32_t instruction) const;

 private:
  // A collective of this rank: what the program says, and how far it is in this step.
  struct Call {
    std::uint32_t instruction = 0;
    Collective what{};
    CommunicatorId communicator = 0;
    std::uint32_t number = 0;  // on its communicator
    std::vector<std::uint32_t> members{};
    std::size_t me = 0;  // among them
    bool possible = true;

    bool begun = false;
    bool over = false;
    std::vector<std::vector<std::byte>> shares{};  // [member], until they are used
    std::vector<bool> has_share{}, has_sum{};      // [member]
    std::size_t shares_left = 0, sums_left = 0;
  };
  struct Message {
    int peer = 0;
    Frame frame{};
    std::vector<std::byte> body{};
  };
  using Place = std::pair<CommunicatorId, std::uint32_t>;

  [[nodiscard]] Buffer data(const Call& call);
  [[nodiscard]] std::string use(const Call& call);
  [[nodiscard]] std::size_t size_of_share(const Call& call, std::size_t from, std::size_t to);
  [[nodiscard]] std::vector<Message> shares_of(const Call& call);
  [[nodiscard]] Message message(const Call& call, FrameKind kind, std::size_t to,
                                Buffer bytes) const;
  void work(Call& call);
  void add_up(Call& call);
  void sum_arrived(Call& call, std::size_t from);
  void end(Call& call);
  [[nodiscard]] bool is_in_turn(const Call& call, std::uint32_t peer) const;
  [[nodiscard]] std::string misplaced(const Call& call, std::size_t from, const Frame& frame) const;
  [[nodiscard]] std::string mismatch(const Call& call, std::size_t from, const Frame& frame,
                                     std::span<const std::byte> body);
  void fail(const Call& call, std::string reason, std::uint32_t culprit);
  // Of the frame's communicator, the collective that it is, or that may be meant.
  [[nodiscard]] Call* nearest(const Frame& frame);

  RankMemory& memory_;
  Mesh& mesh_;
  const std::uint32_t rank_;
  std::vector<Call> calls_;
  std::map<Place, std::size_t> places_;  // into calls_
  std::map<std::uint32_t, std::size_t> of_instruction_;
  mutable std::mutex mutex_;
  Transport::Listener* listener_ = nullptr;
  int step_ = -1;
};

}  // namespace counterflow::exec

#pragma once

#include <atomic>
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
#include "executor/processes/mesh_collectives.h"
#include "executor/transport.h"
#include "scheduler/graph/matching.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// The messages and collectives of one rank, over a mesh. A receive that is posted says so to the
// sender; a send goes when it is posted and its receive is: nothing is buffered, unless the
// semantics are. What a message carries, its size, its bytes, its place on its channel and the
// versions of the slots are compared where it arrives.
class MeshTransport final : public Transport {
 public:
  // Everything given must outlive it.
  MeshTransport(const Program& program, const Matching& matching, Semantics semantics,
                RankMemory& memory, Mesh& mesh);

  // Before any other rank may begin the step; a second time is of no effect.
  void begin_step(int step, Listener& listener) override;
  void post(Matching::End end) override;
  void arrive(std::uint32_t rank, std::uint32_t instruction) override;

  // For whoever listens to the mesh: a frame `ready` or `data`.
  void received_ready(int peer, const Frame& frame);
  [[nodiscard]] std::span<std::byte> room(int peer, const Frame& frame);
  void received_data(int peer, const Frame& frame, std::span<const std::byte> body);
  // A frame `share` or `sum`.
  void received_part(int peer, const Frame& frame, std::span<const std::byte> body) {
    collectives_.received(peer, frame, body);
  }
  // What a collective that is under way here has not received.
  [[nodiscard]] std::optional<Lack> lacks(std::uint32_t instruction) const {
    return collectives_.lacks(instruction);
  }

 private:
  struct Key {
    std::uint32_t peer;
    std::uint16_t communicator;
    std::uint32_t sequence;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Message {
    bool posted = false;  // by this end
    bool ready = false;   // of a send: its receive is posted
    bool here = false;    // of a receive: its message has arrived
    bool over = false;
    // Of a receive: what arrived before it was posted. Of a send: what is packed and under way.
    std::vector<std::byte> kept{};
    Frame frame{};
  };

  [[nodiscard]] const Transfer& transfer(std::uint32_t k) const {
    return program_.ranks[rank_].transfers[k];
  }
  [[nodiscard]] std::uint16_t communicator(std::uint32_t k) const;
  [[nodiscard]] std::span<std::byte> bytes_of(std::uint32_t k);
  [[nodiscard]] std::string use(std::uint32_t k);
  void send(std::uint32_t k);
  // Of a send that is packed.
  void keep(std::uint32_t k, std::vector<std::byte> bytes);
  void arrive(std::uint32_t k, const Frame& frame, std::span<const std::byte> body);
  [[nodiscard]] std::string mismatch(std::uint32_t k, const Frame& frame,
                                     std::span<const std::byte> body) const;
  // A message that does not belong to what is expected at its peer, told of the first receive from
  // there that is still open.
  void stray(int peer, const Frame& frame, const char* what);

  const Program& program_;
  const Matching& matching_;
  const bool buffered_;
  RankMemory& memory_;
  Mesh& mesh_;
  const std::uint32_t rank_;
  MeshCollectives collectives_;
  std::map<Key, std::uint32_t> sends_, receives_;  // transfers by what the wire calls them
  std::mutex mutex_;
  std::vector<Message> messages_;  // [transfer]
  Listener* listener_ = nullptr;
  std::atomic<int> step_{-1};
};

}  // namespace counterflow::exec

#pragma once

#include <chrono>
#include <memory>

#include "executor/processes/mesh.h"

namespace gloo::rendezvous {
class Store;
}

namespace counterflow::exec {

// Ranks in processes of their own, connected by gloo over TCP: a thread that sends and one that
// receives for each peer.
class GlooMesh final : public Mesh {
 public:
  // Connects to all others, each of whom must come within `patience`. `address`: of this machine,
  // "" for what its host name says. Throws EnvironmentError.
  GlooMesh(int rank, int size, gloo::rendezvous::Store& store, const char* address,
           std::chrono::milliseconds patience);
  ~GlooMesh() override;
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  [[nodiscard]] int rank() const override;
  [[nodiscard]] int size() const override;
  void listen(Listener& listener) override;
  void send(int peer, const Frame& frame, std::span<const std::byte> body,
            std::function<void()> sent) override;
  void send(int peer, const Frame& frame, std::vector<std::byte> body) override;
  void close(std::chrono::nanoseconds patience) override;

 private:
  class Peer;
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace counterflow::exec

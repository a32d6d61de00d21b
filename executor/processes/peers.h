#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/backend.h"
#include "executor/processes/mesh.h"
#include "executor/processes/wire.h"

namespace counterflow::exec {

// What the other ranks have said: of each the last frame of every kind, whether it is there, and
// whether one of them has stopped the run. Threads of the mesh write, the rank's own reads.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  // Whoever says nothing for as long as `silence` counts as gone.
  Peers(int size, int me, std::chrono::nanoseconds silence);

  void heard(int peer);
  // This rank looks around, as it does all the time. Where it has not run for a while (a machine
  // that was stopped, or has far too much to do), what the others said waits to be heard, and their
  // silence of that time does not count.
  void look(Clock::time_point now);
  void note(int peer, const Frame& frame, std::span<const std::byte> body);
  void lose(int peer, const std::string& why);
  void forget(int peer, FrameKind kind);

  // Waits for `ready`, at most so long; whether it is.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds most, const std::function<bool()>& ready);
  [[nodiscard]] bool has(int peer, FrameKind kind) const;
  // Of everyone who is there.
  [[nodiscard]] bool all_have(FrameKind kind) const;
  [[nodiscard]] bool all_at(FrameKind kind, int step) const;
  [[nodiscard]] Frame frame(int peer, FrameKind kind) const;
  [[nodiscard]] std::vector<std::byte> body(int peer, FrameKind kind) const;
  // Of an answer about progress.
  [[nodiscard]] int state(int peer, std::uint32_t instruction) const;
  [[nodiscard]] std::optional<Lack> lacks(int peer, std::uint32_t instruction) const;

  // "" for one that is there, else what is known of it.
  [[nodiscard]] std::string gone(int peer) const;
  [[nodiscard]] std::optional<int> first_gone() const;
  // Somebody has stopped the run.
  [[nodiscard]] std::optional<Failure> stop() const;

 private:
  struct Said {
    Frame frame;
    std::vector<std::byte> body;
  };
  struct Peer {
    std::map<FrameKind, Said> said;
    PeerProgress progress;  // of the last answer about it
    std::string lost;
    Clock::time_point last_heard;
  };

  [[nodiscard]] std::string gone_locked(const Peer& peer) const;

  const int me_;
  const std::chrono::nanoseconds silence_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  Clock::time_point last_look_;
  std::optional<Failure> stop_;
};

}  // namespace counterflow::exec

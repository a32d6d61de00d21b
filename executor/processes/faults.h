#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/compute.h"
#include "executor/processes/mesh.h"
#include "scheduler/ir/units.h"

// What can go wrong with a rank or its messages, made to happen: for tests of everything that must
// notice.
namespace counterflow::exec {

enum class FaultKind : std::uint8_t {
  kill,       // the process ends
  stall,      // an op never ends
  slow,       // from then on every op takes a hundred times as long
  drop,       // a message is not sent, though its sender thinks so
  duplicate,  // a message is sent twice
  reorder,    // a message takes the place of the one after it on its channel
  corrupt,    // a bit of a message is another one
  size,       // a message says that it is longer than it is
};

// The n-th op that a rank runs, or the n-th message that it sends, those of collectives included,
// counted from 0 over all steps.
struct Fault {
  FaultKind kind = FaultKind::kill;
  Rank rank = 0;
  std::uint32_t at = 0;
};
// "drop@2:5": the message 5 that rank 2 sends. Throws InputError.
[[nodiscard]] Fault parse_fault(std::string_view text);

// The ops of one rank, with its faults.
class FaultyCompute final : public Compute {
 public:
  FaultyCompute(Compute& inner, const std::vector<Fault>& faults, Rank rank);
  void run(const ComputeCall& call) override;
  void begin_step(Rank rank, int step) override { inner_.begin_step(rank, step); }
  void end_step(Rank rank, int step) override { inner_.end_step(rank, step); }

 private:
  Compute& inner_;
  std::map<std::uint32_t, FaultKind> faults_;  // by op
  std::atomic<std::uint32_t> ops_{0};
  std::atomic<bool> slow_{false};
};

// What one rank sends, with its faults.
class FaultyMesh final : public Mesh {
 public:
  FaultyMesh(Mesh& inner, const std::vector<Fault>& faults);
  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  void listen(Listener& listener) override { inner_.listen(listener); }
  void send(int peer, const Frame& frame, std::span<const std::byte> body,
            std::function<void()> sent) override;
  void send(int peer, const Frame& frame, std::vector<std::byte> body) override;
  void close(std::chrono::nanoseconds patience) override { inner_.close(patience); }

 private:
  // Sends it in its stead; false: nothing is wrong with this one.
  [[nodiscard]] bool spoil(int peer, const Frame& frame, std::span<const std::byte> body);

  Mesh& inner_;
  std::map<std::uint32_t, FaultKind> faults_;  // by message
  std::atomic<std::uint32_t> messages_{0};
};

}  // namespace counterflow::exec

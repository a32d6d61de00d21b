#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace counterflow {

// When a transfer lets its two ends go on. Whether an order of sends and receives can deadlock
// depends on it.
enum class Semantics : std::uint8_t {
  buffered,    // a send never blocks
  posted,      // a send waits until its receive is posted; receives post in order and do not block
  rendezvous,  // both ends block, in order
};
inline constexpr Semantics kAllSemantics[] = {Semantics::buffered, Semantics::posted,
                                              Semantics::rendezvous};

[[nodiscard]] std::string_view name(Semantics semantics);
[[nodiscard]] std::optional<Semantics> semantics_named(std::string_view name);

// How the launch order of transfers on different communicators of one rank binds their execution.
enum class LaunchOrder : std::uint8_t {
  independent,  // not at all
  chained,      // a transfer starts after the one launched before it has started
  serial,       // ... has finished
};

[[nodiscard]] std::string_view name(LaunchOrder order);
[[nodiscard]] std::optional<LaunchOrder> launch_order_named(std::string_view name);

// The machine's rules as one value, read alike by verification, simulator and executor.
struct ExecutionModel {
  std::string name = "ideal";
  Semantics semantics = Semantics::buffered;
  // Every transfer runs as if on a stream of its own: nothing queues behind it.
  bool independent_transfers = true;
  // Transfers of one communicator run one after the other in launch order, whatever their streams.
  bool serial_communicators = false;
  LaunchOrder launch_order = LaunchOrder::independent;
  // Streams share this many hardware queues (stream number modulo queues); 0 is unlimited.
  int hardware_queues = 0;

  // Published figures are computed under `ideal`: only latency and bandwidth count.
  [[nodiscard]] static ExecutionModel ideal();
  // NCCL: zero-buffer rendezvous, one communicator is one queue, launches chained (NCCL 2.26+).
  [[nodiscard]] static ExecutionModel nccl();
  // gloo: sends wait for a posted receive, tags keep pairs apart.
  [[nodiscard]] static ExecutionModel gloo();
  // The preset of that name, if there is one.
  [[nodiscard]] static std::optional<ExecutionModel> preset(std::string_view name);

  friend bool operator==(const ExecutionModel&, const ExecutionModel&) = default;
};

}  // namespace counterflow

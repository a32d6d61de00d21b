#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/ir/program.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// Numbers the ways messages take: one for each edge of the stage graph, each direction and each
// replica. Edges whose ends share a rank are there too, though nothing is sent on them.
class Channels {
 public:
  struct Channel {
    PayloadKind kind = PayloadKind::activation;
    std::uint8_t replica = 0;
    Stage from = 0;  // computes the payload
    Stage to = 0;    // needs it
    Rank source = 0;
    Rank destination = 0;
    Bytes size;  // of a message: what flows over an edge has the size of the lower stage's output
    Bytes wire;  // the size it travels with
    [[nodiscard]] bool crosses_ranks() const { return source != destination; }
    [[nodiscard]] Payload payload(Microbatch microbatch) const {
      return {.kind = kind,
              .replica = replica,
              .from = static_cast<std::uint16_t>(from),
              .to = static_cast<std::uint16_t>(to),
              .part = 0,
              .microbatch = microbatch};
    }
    // The two ends of a message as a schedule file names them: by the op there.
    [[nodiscard]] Op send_op(Microbatch microbatch) const {
      const bool forward = kind == PayloadKind::activation;
      return {forward ? OpKind::send_forward : OpKind::send_backward, replica,
              static_cast<std::uint16_t>(from), microbatch};
    }
    [[nodiscard]] Op receive_op(Microbatch microbatch) const {
      const bool forward = kind == PayloadKind::activation;
      return {forward ? OpKind::receive_forward : OpKind::receive_backward, replica,
              static_cast<std::uint16_t>(to), microbatch};
    }
  };
  using Id = std::uint32_t;

  explicit Channels(const Problem& problem);

  [[nodiscard]] std::size_t size() const { return channels_.size(); }
  [[nodiscard]] const Channel& operator[](Id id) const { return channels_[id]; }
  // What an op needs before it begins, in the order of the stage's inputs: activations for F,
  // gradients for B and I.
  [[nodiscard]] const std::vector<Id>& inputs(const Op& op) const;
  // What leaves when an op ends.
  [[nodiscard]] const std::vector<Id>& outputs(const Op& op) const;
  // The channel of a payload, if the stage graph has it.
  [[nodiscard]] std::optional<Id> find(const Payload& payload) const;

 private:
  [[nodiscard]] std::size_t chunk(int replica, Stage stage) const {
    return static_cast<std::size_t>(replica) * stages_ + static_cast<std::size_t>(stage);
  }
  void add(const Problem& problem, PayloadKind kind, int replica, Stage from, Stage to);

  std::size_t stages_;
  std::vector<Channel> channels_;
  // [replica * stages + stage]
  std::vector<std::vector<Id>> activations_in_, activations_out_, gradients_in_, gradients_out_;
};

}  // namespace counterflow

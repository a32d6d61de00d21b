#include "scheduler/graph/channels.h"

#include <algorithm>

namespace counterflow {
namespace {

const std::vector<Channels::Id> kNoChannels;

}  // namespace

Channels::Channels(const Problem& problem) : stages_(static_cast<std::size_t>(problem.stages())) {
  const int replicas = problem.placement.replicas();
  const std::size_t chunks = stages_ * static_cast<std::size_t>(replicas);
  for (auto* table : {&activations_in_, &activations_out_, &gradients_in_, &gradients_out_}) {
    table->resize(chunks);
  }
  // The inputs of a stage stand in the declared order of its predecessors, its outputs by stage.
  for (int replica = 0; replica < replicas; ++replica) {
    for (Stage to = 0; to < problem.stages(); ++to) {
      for (const Stage from : problem.graph.predecessors(to)) {
        add(problem, PayloadKind::activation, replica, from, to);
        // No gradient flows into what is frozen all the way up.
        if (problem.needs_backward_input(from)) {
          add(problem, PayloadKind::gradient, replica, to, from);
        }
      }
    }
  }
}

void Channels::add(const Problem& problem, PayloadKind kind, int replica, Stage from, Stage to) {
  const auto id = static_cast<Id>(channels_.size());
  channels_.push_back({.kind = kind,
                       .replica = static_cast<std::uint8_t>(replica),
                       .from = from,
                       .to = to,
                       .source = problem.placement.rank_of(from, replica),
                       .destination = problem.placement.rank_of(to, replica),
                       .size = problem.message[static_cast<std::size_t>(std::min(from, to))],
                       .wire = problem.wire_size(from, to)});
  const bool forward = kind == PayloadKind::activation;
  (forward ? activations_out_ : gradients_out_)[chunk(replica, from)].push_back(id);
  (forward ? activations_in_ : gradients_in_)[chunk(replica, to)].push_back(id);
}

const std::vector<Channels::Id>& Channels::inputs(const Op& op) const {
  if (op.kind == OpKind::forward) return activations_in_[chunk(op.replica, op.stage)];
  if (makes_input_gradient(op.kind)) return gradients_in_[chunk(op.replica, op.stage)];
  return kNoChannels;
}

const std::vector<Channels::Id>& Channels::outputs(const Op& op) const {
  if (op.kind == OpKind::forward) return activations_out_[chunk(op.replica, op.stage)];
  if (makes_input_gradient(op.kind)) return gradients_out_[chunk(op.replica, op.stage)];
  return kNoChannels;
}

std::optional<Channels::Id> Channels::find(const Payload& payload) const {
  const auto& table = payload.kind == PayloadKind::activation ? activations_out_ : gradients_out_;
  const std::size_t from = chunk(payload.replica, payload.from);
  if (payload.kind == PayloadKind::metadata || from >= table.size()) return std::nullopt;
  for (const Id id : table[from]) {
    if (channels_[id].to == payload.to) return id;
  }
  return std::nullopt;
}

}  // namespace counterflow

#include "schedules/turns.h"

#include <cstddef>

namespace counterflow {
namespace {

Op op_of(OpKind kind, const Turn& turn) {
  return compute_op(kind, turn.stage, turn.microbatch);
}

std::vector<Slot> warm_up(const Turns& turns) {
  std::vector<Slot> order;
  order.reserve(3 * turns.forwards.size());
  for (std::size_t k = 0; k < static_cast<std::size_t>(turns.warm_up); ++k) {
    order.push_back({op_of(OpKind::forward, turns.forwards[k]), {}});
  }
  return order;
}

}  // namespace

Turns single_stage_turns(Stage stage, int microbatches, int warm_up) {
  Turns turns;
  turns.forwards.reserve(static_cast<std::size_t>(microbatches));
  for (Microbatch i = 0; i < microbatches; ++i) turns.forwards.push_back({stage, i});
  turns.backwards = turns.forwards;
  turns.warm_up = warm_up;
  return turns;
}

std::vector<Slot> alternate(const Turns& turns) {
  std::vector<Slot> order = warm_up(turns);
  for (std::size_t k = 0, next = order.size(); k < turns.backwards.size(); ++k, ++next) {
    if (next < turns.forwards.size()) {
      order.push_back({op_of(OpKind::forward, turns.forwards[next]), {}});
    }
    order.push_back({op_of(OpKind::backward, turns.backwards[k]), {}});
  }
  return order;
}

std::vector<Slot> alternate_fused(const Turns& turns) {
  std::vector<Slot> order = warm_up(turns);
  for (std::size_t k = 0, next = order.size(); k < turns.backwards.size(); ++k, ++next) {
    const Op backward = op_of(OpKind::backward, turns.backwards[k]);
    if (next < turns.forwards.size()) {
      order.push_back({op_of(OpKind::forward, turns.forwards[next]), backward});
    } else {
      order.push_back({backward, {}});
    }
  }
  return order;
}

std::vector<Slot> alternate_split(const Turns& turns, int delay) {
  std::vector<Slot> order = warm_up(turns);
  std::size_t weights = 0;
  for (std::size_t k = 0, next = order.size(); k < turns.backwards.size(); ++k, ++next) {
    if (next < turns.forwards.size()) {
      order.push_back({op_of(OpKind::forward, turns.forwards[next]), {}});
    }
    order.push_back({op_of(OpKind::backward_input, turns.backwards[k]), {}});
    if (k >= static_cast<std::size_t>(delay)) {
      order.push_back({op_of(OpKind::backward_weight, turns.backwards[weights++]), {}});
    }
  }
  while (weights < turns.backwards.size()) {
    order.push_back({op_of(OpKind::backward_weight, turns.backwards[weights++]), {}});
  }
  return order;
}

}  // namespace counterflow

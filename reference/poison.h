#pragma once

#include <limits>
#include <span>

#include "reference/model.h"
#include "scheduler/ir/op.h"

namespace counterflow::reference {

// A number that one op of one step gets wrong, as an overflow or a broken unit would: for tests of
// everything that must notice.
struct Poison {
  int step = -1;  // from 0; -1: none
  Op op{};        // F, I or W: its kind, stage and microbatch count, whichever copy runs it
  float value = std::numeric_limits<float>::quiet_NaN();

  // Each puts the number where the op leaves its result, if it is this op. The first stage's I
  // leaves none.
  template <typename T>
  void forward(int at, const Model<T>& model, const Op& done, const Operands<T>& operands) const {
    if (!strikes(at, OpKind::forward, done)) return;
    if (model.has_loss(done.stage)) {
      operands.saved.back() = static_cast<T>(value);  // in the loss's gradient
    } else {
      spoil(operands);
    }
  }
  template <typename T>
  void input_gradient(int at, const Op& done, const Operands<T>& operands) const {
    if (strikes(at, OpKind::backward_input, done)) spoil(operands);
  }
  template <typename T>
  void weight_gradient(int at, const Op& done, std::span<T> gradient) const {
    if (strikes(at, OpKind::backward_weight, done)) gradient.front() = static_cast<T>(value);
  }

 private:
  [[nodiscard]] bool strikes(int at, OpKind kind, const Op& done) const {
    return at == step && kind == op.kind && done.stage == op.stage &&
           done.microbatch == op.microbatch;
  }
  // All outputs are the same.
  template <typename T>
  void spoil(const Operands<T>& operands) const {
    for (const std::span<T> output : operands.outputs) output.front() = static_cast<T>(value);
  }
};

}  // namespace counterflow::reference

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/problem/problem.h"

namespace counterflow::testing {

// Tries all orders: branches over the op that begins next, in order of time, with its own count of
// time, phase by phase on each rank. Fuses pairs wherever a pair cost is given. Keeps to the memory
// limits, by its own count.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem)
      : problem_(problem),
        clocks_(static_cast<std::size_t>(problem.ranks()), 0),
        work_left_(clocks_.size(), 0),
        bytes_(clocks_.size(), 0),
        activations_(clocks_.size(), 0),
        left_of_phase_(clocks_.size(), std::vector<int>(problem.phases.size() + 1, 0)) {
    const auto cells =
        static_cast<std::size_t>(problem.stages()) * static_cast<std::size_t>(problem.microbatches);
    for (auto* table : {&forward_, &gradient_, &weight_, &stored_, &restored_}) {
      table->assign(cells, kNotYet);
    }
    for (Stage stage = 0; stage < problem.stages(); ++stage) {
      for (Microbatch mb = 0; mb < problem.microbatches; ++mb) {
        add_work(OpKind::forward, stage, mb);
        if (problem.needs_backward_input(stage, mb)) add_work(OpKind::backward_input, stage, mb);
        if (problem.needs_backward_weight(stage, mb)) add_work(OpKind::backward_weight, stage, mb);
        if (!problem.restores(stage, mb)) continue;
        const Keeping keeping = problem.keeping_of(stage);
        if (keeping.store_kind() != OpKind::none) add_work(keeping.store_kind(), stage, mb);
        add_work(keeping.restore_kind(), stage, mb);
      }
    }
  }

  // Is there an order with a makespan below `limit`?
  bool beats(Time limit) {
    limit_ = limit.count();
    return branch(0);
  }

 private:
  static constexpr std::int64_t kNotYet = -1;

  struct Ready {
    Op op;
    std::int64_t begin;
  };

  std::int64_t& end_in(std::vector<std::int64_t>& table, Stage stage, Microbatch mb) const {
    return table[static_cast<std::size_t>(stage) * static_cast<std::size_t>(problem_.microbatches) +
                 static_cast<std::size_t>(mb)];
  }
  [[nodiscard]] Rank rank_of(Stage stage, Microbatch mb) const {
    return problem_.placement.rank_of(stage, problem_.replica_of(mb));
  }
  std::int64_t& clock(Rank rank) { return clocks_[static_cast<std::size_t>(rank)]; }
  int& left_of_phase(Stage stage, Microbatch mb) {
    return left_of_phase_[static_cast<std::size_t>(rank_of(stage, mb))][problem_.phase_of(mb)];
  }
  // Is anything of an earlier phase left on the rank?
  bool is_too_early(Stage stage, Microbatch mb) const {
    const auto& left = left_of_phase_[static_cast<std::size_t>(rank_of(stage, mb))];
    return std::any_of(left.begin(),
                       left.begin() + static_cast<std::ptrdiff_t>(problem_.phase_of(mb)),
                       [](int count) { return count > 0; });
  }
  std::int64_t work_of(const Op& op) const { return problem_.costs.duration(op).count(); }
  void add_work(OpKind kind, Stage stage, Microbatch mb) {
    ++left_;
    ++left_of_phase(stage, mb);
    work_left_[static_cast<std::size_t>(rank_of(stage, mb))] +=
        work_of({kind, 0, static_cast<std::uint16_t>(stage), mb});
  }

  // When the inputs of an op are all there; kNotYet if one is missing.
  std::int64_t inputs(const Op& op) {
    const Rank here = rank_of(op.stage, op.microbatch);
    std::int64_t ready = 0;
    bool there = true;
    const auto need = [&](std::vector<std::int64_t>& table, Stage stage) {
      const std::int64_t end = end_in(table, stage, op.microbatch);
      there &= end != kNotYet;
      ready = std::max(ready,
                       end + problem_.links.latency(rank_of(stage, op.microbatch), here).count());
    };
    if (op.kind == OpKind::backward_weight) {
      need(gradient_, op.stage);
    } else if (op.kind == OpKind::forward) {
      for (const Stage before : problem_.graph.predecessors(op.stage)) need(forward_, before);
    } else if (restores_or_stores(op.kind)) {
      need(op.kind == OpKind::reload ? stored_ : forward_, op.stage);
    } else {
      need(forward_, op.stage);
      if (problem_.restores(op.stage, op.microbatch)) need(restored_, op.stage);
      for (const Stage next : problem_.graph.successors(op.stage)) need(gradient_, next);
    }
    return there ? ready : kNotYet;
  }

  std::vector<Ready> ready_ops() {
    std::vector<Ready> ready;
    const auto offer = [&](OpKind kind, Stage stage, Microbatch mb) {
      const Op op{kind, static_cast<std::uint8_t>(problem_.replica_of(mb)),
                  static_cast<std::uint16_t>(stage), mb};
      const std::int64_t at = inputs(op);
      if (at != kNotYet) ready.push_back({op, std::max(at, clock(rank_of(stage, mb)))});
    };
    for (Stage stage = 0; stage < problem_.stages(); ++stage) {
      for (Microbatch mb = 0; mb < problem_.microbatches; ++mb) {
        if (is_too_early(stage, mb)) continue;
        const bool weight = problem_.needs_backward_weight(stage, mb);
        if (end_in(forward_, stage, mb) == kNotYet) {
          offer(OpKind::forward, stage, mb);
        } else if (!problem_.needs_backward_input(stage, mb)) {
          continue;
        } else if (end_in(gradient_, stage, mb) == kNotYet) {
          if (problem_.restores(stage, mb)) offer_moves(stage, mb, offer);
          if (weight && problem_.split_backward != SplitBackward::split) {
            offer(OpKind::backward, stage, mb);
          }
          if (!weight || problem_.split_backward != SplitBackward::full) {
            offer(OpKind::backward_input, stage, mb);
          }
        } else if (weight && end_in(weight_, stage, mb) == kNotYet) {
          offer(OpKind::backward_weight, stage, mb);
        }
      }
    }
    return ready;
  }

  template <typename Offer>
  void offer_moves(Stage stage, Microbatch mb, Offer offer) {
    const Keeping keeping = problem_.keeping_of(stage);
    const bool stores = keeping.store_kind() != OpKind::none;
    if (stores && end_in(stored_, stage, mb) == kNotYet) offer(keeping.store_kind(), stage, mb);
    if (end_in(restored_, stage, mb) == kNotYet) offer(keeping.restore_kind(), stage, mb);
  }

  // Marks an op done at `end` (or, with kNotYet, not done) and returns how many parts it has.
  int mark(const Op& op, std::int64_t end) {
    if (op.kind == OpKind::forward) {
      end_in(forward_, op.stage, op.microbatch) = end;
      return 1;
    }
    if (restores_or_stores(op.kind)) {
      end_in(op.kind == OpKind::offload ? stored_ : restored_, op.stage, op.microbatch) = end;
      return 1;
    }
    if (op.kind != OpKind::backward_weight) end_in(gradient_, op.stage, op.microbatch) = end;
    if (op.kind != OpKind::backward_input) end_in(weight_, op.stage, op.microbatch) = end;
    return op.kind == OpKind::backward ? 2 : 1;
  }

  // Takes what the slot takes when it begins and gives back what it gives when it ends; false if
  // that is more than the rank may hold.
  bool hold(const Op& op, const std::optional<Op>& fused, std::size_t rank) {
    const MemoryLimits& limits = problem_.limits;
    const auto each = [&](auto count) {
      count(op);
      if (fused) count(*fused);
    };
    each([&](const Op& one) {
      bytes_[rank] += problem_.allocated(one).value;
      activations_[rank] += one.kind == OpKind::forward ? 1 : 0;
    });
    const std::int64_t fixed = limits.static_memory.empty() ? 0 : limits.static_memory[rank].value;
    if (!limits.bytes.empty() && bytes_[rank] + fixed > limits.bytes[rank].value) return false;
    if (!limits.activations.empty() && activations_[rank] > limits.activations[rank]) return false;
    each([&](const Op& one) {
      bytes_[rank] -= problem_.freed(one).value;
      activations_[rank] -= ends_activation(one) ? 1 : 0;
    });
    return true;
  }
  // Is this the last op that needs the activation?
  [[nodiscard]] bool ends_activation(const Op& op) const {
    switch (op.kind) {
      case OpKind::forward:
        return !problem_.needs_backward_input(op.stage, op.microbatch);
      case OpKind::backward_input:
        return !problem_.needs_backward_weight(op.stage, op.microbatch);
      case OpKind::recompute:
      case OpKind::offload:
      case OpKind::reload:
        return false;
      default:
        return true;
    }
  }

  // Does an order that goes on with this op (fused with another) stay below the limit?
  bool run(const Op& op, const std::optional<Op>& fused, std::int64_t begin) {
    const std::int64_t end = begin + problem_.duration({op, fused.value_or(Op{})}).count();
    const auto rank = static_cast<std::size_t>(rank_of(op.stage, op.microbatch));
    const std::int64_t work = work_of(op) + (fused ? work_of(*fused) : 0);
    // A rank that fuses may need less than the sum of what is left.
    const std::int64_t still = problem_.costs.pairs().empty() ? work_left_[rank] - work : 0;
    if (end + still >= limit_) return false;
    const std::pair held{bytes_[rank], activations_[rank]};
    if (!hold(op, fused, rank)) {
      std::tie(bytes_[rank], activations_[rank]) = held;
      return false;
    }
    const std::int64_t before = std::exchange(clocks_[rank], end);
    work_left_[rank] -= work;
    int parts = mark(op, end);
    if (fused) parts += mark(*fused, end);
    left_ -= parts;
    left_of_phase(op.stage, op.microbatch) -= parts;
    const bool found = branch(begin);
    left_of_phase(op.stage, op.microbatch) += parts;
    left_ += parts;
    mark(op, kNotYet);
    if (fused) mark(*fused, kNotYet);
    work_left_[rank] += work;
    clocks_[rank] = before;
    std::tie(bytes_[rank], activations_[rank]) = held;
    return found;
  }

  bool branch(std::int64_t now) {
    if (left_ == 0) return true;
    const std::vector<Ready> ready = ready_ops();
    for (const auto& [op, begin] : ready) {
      // Before `now`: another branch has it in its place.
      if (begin >= now && run(op, std::nullopt, begin)) return true;
    }
    return !problem_.costs.pairs().empty() && branch_over_pairs(ready, now);
  }

  bool branch_over_pairs(const std::vector<Ready>& ready, std::int64_t now) {
    const auto rank = [this](const Op& op) { return rank_of(op.stage, op.microbatch); };
    for (const auto& [forward, begin] : ready) {
      if (forward.kind != OpKind::forward) continue;
      for (const auto& [backward, other] : ready) {
        if (backward.kind != OpKind::backward || rank(forward) != rank(backward)) continue;
        const std::int64_t at = std::max(begin, other);
        if (at >= now && run(forward, backward, at)) return true;
      }
    }
    return false;
  }

  const Problem& problem_;
  std::vector<std::int64_t> clocks_;     // [rank]
  std::vector<std::int64_t> work_left_;  // [rank] nothing fused
  std::vector<std::int64_t> bytes_;      // [rank] held, likewise below
  std::vector<std::int64_t> activations_;
  std::vector<std::vector<int>> left_of_phase_;            // [rank][phase] parts not done
  std::vector<std::int64_t> forward_, gradient_, weight_;  // [stage][microbatch] end
  std::vector<std::int64_t> stored_, restored_;            // likewise, of OFFLOAD and what restores
  int left_ = 0;                                           // parts not done: F, I, W, moves
  std::int64_t limit_ = 0;
};

}  // namespace counterflow::testing

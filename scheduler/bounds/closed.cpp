#include "scheduler/bounds/closed.h"

#include <algorithm>
#include <limits>
#include <vector>

// Each rank runs one op at a time. Before its first op (a forward) there is at least the shortest
// way in: the forwards of all stages before it, for one microbatch. After the last F or I it runs
// there is at least the shortest way out: the input gradients of the stages before it and the last
// W. Between them lies at least the time of all its F and I. A W may be the very last thing, with
// nothing behind it; then all of F, I and W lie behind the way in. Fused pairs can shorten a rank's
// work by no more than the best partner of every op allows, and a pair can be as short as its table
// says, so the ways in and out take the shortest form of each op.
namespace counterflow {
namespace {

// The least time an op of each stage can take, over microbatches and over partners it may be fused
// with. Without a W where there is none.
struct Shortest {
  std::int64_t forward = 0;
  std::int64_t gradient = 0;  // I, or B where the backward is one op
  std::int64_t weight = 0;    // W behind an I; 0 where it may be part of a B
};

// Total work of one stage copy over its microbatches.
struct Load {
  std::int64_t forward = 0;
  std::int64_t gradient = 0;
  std::int64_t weight = 0;
  std::int64_t microbatches = 0;
};

// A rank's ops, at their fastest, with the ways before the first and after the last.
struct RankWay {
  bool idle = true;
  std::int64_t in = 0;
  std::int64_t without_weight = 0;  // F and the gradients; the way out lies behind the last
  std::int64_t all = 0;
  std::int64_t out = 0;

  [[nodiscard]] std::int64_t work() const { return std::max(without_weight, all); }
  [[nodiscard]] std::int64_t work_and_out() const { return std::max(without_weight + out, all); }
};

class ClosedBound {
 public:
  explicit ClosedBound(const Problem& problem)
      : problem_(problem),
        stages_(problem.stages()),
        full_(problem.split_backward == SplitBackward::full),
        shortest_(static_cast<std::size_t>(stages_)) {
    for (int replica = 0; replica < problem.placement.replicas(); ++replica) {
      loads_.emplace_back(static_cast<std::size_t>(stages_));
    }
    for (Stage stage = 0; stage < stages_; ++stage) measure(stage);
    for (int replica = 0; replica < problem.placement.replicas(); ++replica) find_ways(replica);
  }

  [[nodiscard]] std::int64_t value() const {
    std::int64_t best = 0;
    for (Rank rank = 0; rank < problem_.ranks(); ++rank) {
      const RankWay way = of_rank(rank);
      if (!way.idle) best = std::max(best, way.in + way.work_and_out());
    }
    for (std::size_t replica = 0; replica < loads_.size(); ++replica) {
      if (loads_[replica].front().microbatches == 0) continue;
      for (Stage stage = 0; stage < stages_; ++stage) {
        const auto s = static_cast<std::size_t>(stage);
        best = std::max(best, in_[replica][s] + shortest_[s].forward + after_forward_[replica][s]);
      }
    }
    return best;
  }

  [[nodiscard]] RankWay of_rank(Rank rank) const {
    constexpr std::int64_t kLong = std::numeric_limits<std::int64_t>::max();
    std::int64_t way_in = kLong;
    std::int64_t way_out = kLong;
    std::int64_t without_weight = 0;
    std::int64_t weight = 0;
    for (const Chunk& chunk : problem_.placement.chunks_of(rank)) {
      const Load& load = load_of(chunk);
      if (load.microbatches == 0) continue;
      const auto s = static_cast<std::size_t>(chunk.stage);
      way_in = std::min(way_in, in_[chunk.replica][s]);
      way_out = std::min(way_out, problem_.needs_backward_input(chunk.stage)
                                      ? after_gradient_[chunk.replica][s]
                                      : after_forward_[chunk.replica][s]);
      without_weight += load.forward + load.gradient;
      weight += load.weight;
    }
    if (way_in == kLong) return {};
    return {.idle = false,
            .in = way_in,
            .without_weight = without_weight - most_saved(rank, false),
            .all = without_weight + weight - most_saved(rank, true),
            .out = way_out};
  }

 private:
  // Duration of the gradient op and of the W left behind it.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> backward(Stage stage, const Op& op) const {
    if (!problem_.needs_backward_input(stage)) return {0, 0};
    const auto time = [&](OpKind kind) {
      return problem_.costs.duration({kind, op.replica, op.stage, op.microbatch}).count();
    };
    if (!problem_.needs_backward_weight(stage)) return {time(OpKind::backward_input), 0};
    if (full_) return {time(OpKind::backward), 0};
    return {time(OpKind::backward_input), time(OpKind::backward_weight)};
  }

  // The ops that move activations out and bring them back lie between a rank's first F and its last
  // gradient, so they count as load; they lie on no way in or out.
  [[nodiscard]] std::int64_t moving(const Op& forward) const {
    if (!problem_.restores(forward.stage, forward.microbatch)) return 0;
    const Keeping keeping = problem_.keeping_of(forward.stage);
    std::int64_t time = 0;
    for (const OpKind kind : {keeping.store_kind(), keeping.restore_kind()}) {
      if (kind == OpKind::none) continue;
      time += problem_.costs.duration({kind, forward.replica, forward.stage, forward.microbatch})
                  .count();
    }
    return time;
  }

  void measure(Stage stage) {
    constexpr std::int64_t kLong = std::numeric_limits<std::int64_t>::max();
    Shortest& least = shortest_[static_cast<std::size_t>(stage)];
    least = {kLong, kLong, kLong};
    for (Microbatch mb = 0; mb < problem_.microbatches; ++mb) {
      const int replica = problem_.replica_of(mb);
      const Op op{OpKind::forward, static_cast<std::uint8_t>(replica),
                  static_cast<std::uint16_t>(stage), mb};
      const std::int64_t forward = problem_.costs.duration(op).count();
      const auto [gradient, weight] = backward(stage, op);
      Load& load = loads_[static_cast<std::size_t>(replica)][static_cast<std::size_t>(stage)];
      load.forward += forward;
      load.gradient += gradient + moving(op);
      load.weight += weight;
      ++load.microbatches;
      least.forward = std::min(least.forward, forward);
      least.gradient = std::min(least.gradient, gradient);
      least.weight = std::min(least.weight, weight);
    }
    if (!problem_.costs.pairs().empty()) shorten_by_pairs(stage, least);
  }

  // A pair may be shorter than either of its parts.
  void shorten_by_pairs(Stage stage, Shortest& least) const {
    least.weight = 0;
    for (int replica = 0; replica < problem_.placement.replicas(); ++replica) {
      for (const Chunk& other :
           problem_.placement.chunks_of(problem_.placement.rank_of(stage, replica))) {
        const std::int64_t with = problem_.costs.pairs().find(stage, other.stage).count();
        const std::int64_t under = problem_.costs.pairs().find(other.stage, stage).count();
        const double factor = least_factor();
        if (with >= 0) least.forward = std::min(least.forward, scaled(with, factor));
        if (under >= 0) least.gradient = std::min(least.gradient, scaled(under, factor));
      }
    }
  }

  [[nodiscard]] double least_factor() const {
    double least = 1;
    const MicrobatchFactors& factors = problem_.costs.factors();
    for (const auto* kind : {&factors.forward, &factors.backward_input, &factors.backward_weight}) {
      for (const double factor : *kind) least = std::min(least, factor);
    }
    return least;
  }
  static std::int64_t scaled(std::int64_t time, double factor) {
    return factor < 1 ? static_cast<std::int64_t>(static_cast<double>(time) * factor) : time;
  }

  // Longest ways over the stage graph: in before F, out after the gradient, out after F.
  void find_ways(int replica) {
    const auto n = static_cast<std::size_t>(stages_);
    std::vector<std::int64_t> in(n), after_gradient(n), after_forward(n);
    const auto hop = [&](Stage a, Stage b) { return problem_.hop(a, b, replica).count(); };
    for (Stage stage = 0; stage < stages_; ++stage) {
      const auto s = static_cast<std::size_t>(stage);
      after_gradient[s] = shortest_[s].weight;
      for (const Stage before : problem_.graph.predecessors(stage)) {
        const auto b = static_cast<std::size_t>(before);
        in[s] = std::max(in[s], in[b] + shortest_[b].forward + hop(before, stage));
        if (!problem_.needs_backward_input(before)) continue;
        after_gradient[s] = std::max(
            after_gradient[s], hop(stage, before) + shortest_[b].gradient + after_gradient[b]);
      }
    }
    for (Stage stage = stages_ - 1; stage >= 0; --stage) {
      const auto s = static_cast<std::size_t>(stage);
      if (problem_.needs_backward_input(stage)) {
        after_forward[s] = shortest_[s].gradient + after_gradient[s];
      }
      for (const Stage next : problem_.graph.successors(stage)) {
        const auto x = static_cast<std::size_t>(next);
        after_forward[s] =
            std::max(after_forward[s], hop(stage, next) + shortest_[x].forward + after_forward[x]);
      }
    }
    in_.push_back(std::move(in));
    after_gradient_.push_back(std::move(after_gradient));
    after_forward_.push_back(std::move(after_forward));
  }

  [[nodiscard]] const Load& load_of(const Chunk& chunk) const {
    return loads_[chunk.replica][static_cast<std::size_t>(chunk.stage)];
  }

  // An upper limit on what fusing can save a rank, counting W or not: every forward, and every
  // backward, takes part in at most one pair; so the best partner of each forward is a limit, and
  // so is the best partner of each backward.
  [[nodiscard]] std::int64_t most_saved(Rank rank, bool with_weight) const {
    if (problem_.costs.pairs().empty() || problem_.forward_only) return 0;
    if (!problem_.costs.uniform()) return largest_share_saved(rank);
    std::int64_t by_forward = 0;
    std::int64_t by_backward = 0;
    for (const Chunk& one : problem_.placement.chunks_of(rank)) {
      std::int64_t of_forward = 0;
      std::int64_t of_backward = 0;
      for (const Chunk& other : problem_.placement.chunks_of(rank)) {
        of_forward = std::max(of_forward, saving(one.stage, other.stage, with_weight));
        of_backward = std::max(of_backward, saving(other.stage, one.stage, with_weight));
      }
      by_forward += of_forward * load_of(one).microbatches;
      by_backward += of_backward * load_of(one).microbatches;
    }
    return std::min(by_forward, by_backward);
  }

  // What one pair is shorter than its parts, at factor 1.
  [[nodiscard]] std::int64_t saving(Stage forward, Stage backward, bool with_weight) const {
    const std::int64_t pair = problem_.costs.pairs().find(forward, backward).count();
    if (pair < 0 || !problem_.needs_backward_input(backward)) return 0;
    const StageCost& f = problem_.costs.stages()[static_cast<std::size_t>(forward)];
    const StageCost& b = problem_.costs.stages()[static_cast<std::size_t>(backward)];
    // Where a frozen stage's cost still names a W, its pair costs its parts.
    if (!problem_.needs_backward_weight(backward) && b.backward_weight > Time{0}) return 0;
    const Time weight = with_weight || full_ ? b.backward_weight : Time{0};
    return std::max<std::int64_t>(0, (f.forward + b.backward_input + weight).count() - pair);
  }

  // With factors: a pair's cost grows with its parts, so it saves the same share of them for every
  // microbatch; all of a rank's work at its best share. Rounding F, I, W and the pair itself to
  // whole nanoseconds can add less than 4 a pair.
  [[nodiscard]] std::int64_t largest_share_saved(Rank rank) const {
    double share = 0;
    std::int64_t work = 0;
    std::int64_t pairs = 0;
    bool has_pairs = false;
    for (const Chunk& one : problem_.placement.chunks_of(rank)) {
      const Load& load = load_of(one);
      work += load.forward + load.gradient + load.weight;
      pairs += load.microbatches;
      for (const Chunk& other : problem_.placement.chunks_of(rank)) {
        const StageCost& f = problem_.costs.stages()[static_cast<std::size_t>(one.stage)];
        const StageCost& b = problem_.costs.stages()[static_cast<std::size_t>(other.stage)];
        const auto parts = (f.forward + b.backward_input + b.backward_weight).count();
        has_pairs |= problem_.costs.pairs().find(one.stage, other.stage) >= Time{0};
        if (parts == 0) continue;
        share = std::max(share, static_cast<double>(saving(one.stage, other.stage, true)) /
                                    static_cast<double>(parts));
      }
    }
    if (!has_pairs) return 0;
    return static_cast<std::int64_t>(share * static_cast<double>(work)) + 4 * pairs;
  }

  const Problem& problem_;
  int stages_;
  bool full_;
  std::vector<Shortest> shortest_;        // [stage]
  std::vector<std::vector<Load>> loads_;  // [replica][stage]
  // [replica][stage]: longest way before F begins, after I or B ends, after F ends.
  std::vector<std::vector<std::int64_t>> in_, after_gradient_, after_forward_;
};

// A rank does all of a phase before anything of the next: its work in all of them lies between the
// way into its first phase and the way out of its last.
std::int64_t over_phases(const Problem& problem) {
  const auto ranks = static_cast<std::size_t>(problem.ranks());
  std::vector<std::int64_t> begun(ranks, 0);  // the way in and the work before the last phase
  std::vector<RankWay> last(ranks);
  std::int64_t best = 0;
  for (const Phase& phase : problem.phases) {
    const Problem part = problem.only(phase);
    const ClosedBound bound(part);
    best = std::max(best, bound.value());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const RankWay way = bound.of_rank(static_cast<Rank>(rank));
      if (way.idle) continue;
      begun[rank] += last[rank].idle ? way.in : last[rank].work();
      last[rank] = way;
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (!last[rank].idle) best = std::max(best, begun[rank] + last[rank].work_and_out());
  }
  return best;
}

}  // namespace

Time closed_bound(const Problem& problem) {
  if (!problem.phases.empty()) return Time(over_phases(problem));
  return Time(ClosedBound(problem).value());
}

}  // namespace counterflow

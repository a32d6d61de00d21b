#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/bounds/span.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// The cost-driven schedules of the zero-bubble paper (ZB-1p, ZB-2p are their results at limits of p
// and 2p activations): ranks are filled greedily along a clock, with eight settings of three
// switches; the order whose longest span of a rank is least is kept. A switch of our own, for the
// end of the forwards, is tried on the best of the eight.
namespace counterflow {
namespace {

struct Switches {
  // While the first gradient is on its way: wait for it once no further F fits, or take that F too.
  bool waits_for_gradient = false;
  // An F that comes later than the gradient of its round is put off.
  bool gradient_first = false;
  // Any gap is filled by a W, also by one that lasts longer; else only a gap beyond what the rank
  // that has idled most so far could afford.
  bool never_idles = false;
  // When the ranks before have no forwards left they have little to fill a wait with, least of all
  // within tight memory, where no W is left over either: the gradient goes before the last F.
  bool last_forward_yields = false;
};

class CostDriven {
 public:
  explicit CostDriven(const Problem& problem)
      : problem_(problem),
        ranks_(problem.ranks()),
        microbatches_(problem.microbatches),
        room_(most_under_way()),
        arrivals_(forward_only_begins()),
        loads_(loads()) {}

  // The order that these switches lead to; none if its longest span would reach `limit`. O(p m).
  std::optional<Schedule> run(const Switches& switches, Time limit) {
    reset(switches, limit);
    warm_up();
    for (Microbatch round = 1; round < microbatches_ && !is_hopeless_; ++round) {
      estimate_gradients(round);
      for (Rank r = 0; r < ranks_; ++r) forwards(r, round);
      for (Rank r = ranks_; r-- > 0;) {
        fill(r, gradient_arrival(r, round));
        take_gradient(r);
      }
    }
    for (Rank r = 0; r < ranks_; ++r) {
      while (rank(r).weights < microbatches_) take_weight(r);
    }
    if (is_hopeless_) return std::nullopt;
    Schedule schedule;
    for (Line& line : lines_) schedule.ranks.push_back(std::move(line.order));
    return schedule;
  }

  // Of the last run: the longest time from a rank's first begin to its last end.
  [[nodiscard]] Time longest_span() const {
    Time longest{0};
    for (const Line& line : lines_) longest = std::max(longest, line.clock - line.begin);
    return longest;
  }

 private:
  // A rank along its clock. The counts are ops placed of each kind.
  struct Line {
    std::vector<Slot> order;
    std::vector<Time> forward_ends, gradient_ends;  // [microbatch]
    Time begin{0};
    Time clock{0};
    Time idle{0};
    Bytes held;
    Microbatch forwards = 0;
    Microbatch gradients = 0;
    Microbatch weights = 0;
    Microbatch first_forwards = 1;  // before the first gradient
    Time gradient_estimate{0};      // when this round's gradient can be here
  };

  [[nodiscard]] Line& rank(Rank r) { return lines_[static_cast<std::size_t>(r)]; }
  [[nodiscard]] const Line& rank(Rank r) const { return lines_[static_cast<std::size_t>(r)]; }

  // ---- costs, memory ------------------------------------------------------------------------

  // What adapt() takes out takes no time.
  [[nodiscard]] Time duration(OpKind kind, Rank r, Microbatch n) const {
    if (kind == OpKind::backward_input && !problem_.needs_backward_input(r)) return Time{0};
    if (kind == OpKind::backward_weight && !problem_.needs_backward_weight(r)) return Time{0};
    return problem_.costs.duration(compute_op(kind, r, n));
  }

  // A rank is the stage that it holds.
  [[nodiscard]] Time hop(Rank from, Rank to) const { return problem_.hop(from, to, 0); }

  [[nodiscard]] Bytes limit(Rank r) const {
    const MemoryLimits& limits = problem_.limits;
    const auto i = static_cast<std::size_t>(r);
    if (limits.bytes.empty()) return Bytes{std::numeric_limits<std::int64_t>::max()};
    return limits.static_memory.empty() ? limits.bytes[i]
                                        : limits.bytes[i] - limits.static_memory[i];
  }

  [[nodiscard]] bool fits(Rank r, Microbatch n) const {
    const Line& line = rank(r);
    const std::vector<std::int64_t>& activations = problem_.limits.activations;
    if (!activations.empty() &&
        line.forwards - line.weights >= activations[static_cast<std::size_t>(r)]) {
      return false;
    }
    return line.held + problem_.allocated(compute_op(OpKind::forward, r, n)) <= limit(r);
  }

  // For each rank how many forwards may come before its first gradient: as many as fit, and fewer
  // than on the rank before it, which would have to make room to feed it more.
  [[nodiscard]] std::vector<Microbatch> most_under_way() const {
    std::vector<Microbatch> most;
    for (Rank r = 0; r < ranks_; ++r) {
      const std::vector<std::int64_t>& activations = problem_.limits.activations;
      const Microbatch before = r == 0 ? microbatches_ : most.back() - 1;
      Microbatch count = 0;
      Bytes held;
      while (count < before) {
        held += problem_.allocated(compute_op(OpKind::forward, r, count));
        if (held > limit(r)) break;
        if (!activations.empty() && count >= activations[static_cast<std::size_t>(r)]) break;
        ++count;
      }
      most.push_back(std::max(count, 1));
    }
    return most;
  }

  // What each rank runs in all.
  [[nodiscard]] std::vector<Time> loads() const {
    std::vector<Time> loads(static_cast<std::size_t>(ranks_), Time{0});
    for (Rank r = 0; r < ranks_; ++r) {
      for (Microbatch n = 0; n < microbatches_; ++n) {
        for (const OpKind kind :
             {OpKind::forward, OpKind::backward_input, OpKind::backward_weight}) {
          loads[static_cast<std::size_t>(r)] += duration(kind, r, n);
        }
      }
    }
    return loads;
  }

  // When each F could begin if there were nothing else, [rank][microbatch].
  [[nodiscard]] std::vector<std::vector<Time>> forward_only_begins() const {
    std::vector<std::vector<Time>> begins;
    for (Rank r = 0; r < ranks_; ++r) {
      std::vector<Time> row;
      Time clock{0};
      for (Microbatch n = 0; n < room_[static_cast<std::size_t>(r)]; ++n) {
        Time begin = clock;
        for (const Stage feeder : problem_.graph.predecessors(r)) {
          begin = std::max(begin,
                           begins[static_cast<std::size_t>(feeder)][static_cast<std::size_t>(n)] +
                               duration(OpKind::forward, feeder, n) + hop(feeder, r));
        }
        row.push_back(begin);
        clock = begin + duration(OpKind::forward, r, n);
      }
      begins.push_back(std::move(row));
    }
    return begins;
  }

  // ---- placing ops --------------------------------------------------------------------------

  void reset(const Switches& switches, Time limit) {
    switches_ = switches;
    limit_ = limit;
    is_hopeless_ = false;
    most_idle_ = Time{0};
    lines_.assign(static_cast<std::size_t>(ranks_), {});
    for (Line& line : lines_) {
      line.order.reserve(3 * static_cast<std::size_t>(microbatches_));
      line.forward_ends.reserve(static_cast<std::size_t>(microbatches_));
      line.gradient_ends.reserve(static_cast<std::size_t>(microbatches_));
    }
  }

  Time place(OpKind kind, Rank r, Microbatch n, Time ready) {
    Line& line = rank(r);
    const Time begin = std::max(line.clock, ready);
    if (line.order.empty()) {
      line.begin = begin;
    } else {
      line.idle += begin - line.clock;
      most_idle_ = std::max(most_idle_, line.idle);
      is_hopeless_ |= line.idle + loads_[static_cast<std::size_t>(r)] >= limit_;
    }
    line.order.push_back({compute_op(kind, r, n), {}});
    return line.clock = begin + duration(kind, r, n);
  }

  void take_forward(Rank r) {
    Line& line = rank(r);
    const Microbatch n = line.forwards++;
    line.forward_ends.push_back(place(OpKind::forward, r, n, forward_arrival(r, n)));
    line.held += problem_.allocated(compute_op(OpKind::forward, r, n));
    if (!problem_.needs_backward_input(r)) free(r, OpKind::forward, n);
  }

  void take_gradient(Rank r) {
    Line& line = rank(r);
    const Microbatch n = line.gradients++;
    line.gradient_ends.push_back(place(OpKind::backward_input, r, n, gradient_arrival(r, n)));
    if (problem_.needs_backward_input(r)) free(r, OpKind::backward_input, n);
  }

  void take_weight(Rank r) {
    const Microbatch n = rank(r).weights++;
    place(OpKind::backward_weight, r, n, Time{0});
    if (problem_.needs_backward_weight(r)) free(r, OpKind::backward_weight, n);
  }

  void free(Rank r, OpKind kind, Microbatch n) {
    rank(r).held -= problem_.freed(compute_op(kind, r, n));
  }

  [[nodiscard]] Time forward_arrival(Rank r, Microbatch n) const {
    Time arrival{0};
    for (const Stage feeder : problem_.graph.predecessors(r)) {
      arrival = std::max(arrival,
                         rank(feeder).forward_ends[static_cast<std::size_t>(n)] + hop(feeder, r));
    }
    return arrival;
  }

  [[nodiscard]] Time gradient_arrival(Rank r, Microbatch n) const {
    Time arrival = rank(r).forward_ends[static_cast<std::size_t>(n)];
    for (const Stage user : problem_.graph.successors(r)) {
      arrival =
          std::max(arrival, rank(user).gradient_ends[static_cast<std::size_t>(n)] + hop(user, r));
    }
    return arrival;
  }

  [[nodiscard]] bool weight_is_due(Rank r) const { return rank(r).weights < rank(r).gradients; }

  // The wait until `ready`, filled with what W there is.
  void fill(Rank r, Time ready) {
    Line& line = rank(r);
    while (weight_is_due(r) &&
           line.clock + duration(OpKind::backward_weight, r, line.weights) <= ready) {
      take_weight(r);
    }
    const Time gap = ready - line.clock;
    if (gap <= Time{0} || !weight_is_due(r)) return;
    if (switches_.never_idles || gap > most_idle_ - line.idle) take_weight(r);
  }

  // ---- the steps ----------------------------------------------------------------------------

  // How many forwards come before each rank's first gradient: from the last rank upwards what fits
  // until it is there, and more than on the rank behind.
  void count_first_forwards() {
    for (Rank r = ranks_; r-- > 0;) {
      Line& line = rank(r);
      const auto& begins = arrivals_[static_cast<std::size_t>(r)];
      Microbatch least = 1;
      Time arrival = begins[0] + duration(OpKind::forward, r, 0);
      for (const Stage user : problem_.graph.successors(r)) {
        least = std::max(least, rank(user).first_forwards + 1);
        arrival = std::max(arrival, rank(user).gradient_estimate + hop(user, r));
      }
      const Microbatch most = std::min(room_[static_cast<std::size_t>(r)], microbatches_);
      Microbatch count = 1;
      while (count < most) {
        const Time begin = begins[static_cast<std::size_t>(count)];
        const Time end = begin + duration(OpKind::forward, r, count);
        const bool delays = switches_.waits_for_gradient ? end > arrival : begin >= arrival;
        if (delays && count >= least) break;
        ++count;
      }
      line.first_forwards = count;
      const auto last = static_cast<std::size_t>(count - 1);
      const Time free = begins[last] + duration(OpKind::forward, r, count - 1);
      line.gradient_estimate = std::max(arrival, free) + duration(OpKind::backward_input, r, 0);
    }
  }

  void warm_up() {
    count_first_forwards();
    for (Rank r = 0; r < ranks_; ++r) {
      while (rank(r).forwards < rank(r).first_forwards) take_forward(r);
    }
    for (Rank r = ranks_; r-- > 0;) take_gradient(r);
  }

  // When this round's gradient can be at each rank, if no forwards delay it.
  void estimate_gradients(Microbatch round) {
    for (Rank r = ranks_; r-- > 0;) {
      Time& estimate = rank(r).gradient_estimate;
      estimate = rank(r).clock;
      for (const Stage user : problem_.graph.successors(r)) {
        const Line& line = rank(user);
        estimate =
            std::max(estimate, line.gradient_estimate +
                                   duration(OpKind::backward_input, user, round) + hop(user, r));
      }
    }
  }

  [[nodiscard]] bool is_fed(Rank r, Microbatch n) const {
    const auto feeders = problem_.graph.predecessors(r);
    return std::ranges::all_of(feeders, [&](Stage feeder) { return rank(feeder).forwards > n; });
  }

  // May the next F, there at `ready`, wait for the next round? That of the round's own microbatch
  // must not.
  [[nodiscard]] bool is_put_off(Rank r, Microbatch round, Time ready) const {
    const Line& line = rank(r);
    if (switches_.gradient_first && ready > line.gradient_estimate) return true;
    const bool is_last = line.forwards + 1 == microbatches_;
    const bool is_due = line.forwards + 1 == line.first_forwards + round;
    return switches_.last_forward_yields && is_last && is_due &&
           !problem_.graph.predecessors(r).empty();
  }

  // One forward a round, and those put off before. That of the round's own microbatch must be.
  void forwards(Rank r, Microbatch round) {
    Line& line = rank(r);
    while (line.forwards < std::min(microbatches_, line.first_forwards + round)) {
      const Microbatch n = line.forwards;
      if (!is_fed(r, n)) return;
      const Time ready = forward_arrival(r, n);
      if (n > round && is_put_off(r, round, ready)) return;
      while (!fits(r, n) && weight_is_due(r)) take_weight(r);
      if (n > round && !fits(r, n)) return;
      fill(r, ready);
      take_forward(r);
    }
  }

  const Problem& problem_;
  int ranks_;
  Microbatch microbatches_;
  std::vector<Microbatch> room_;             // [rank] most_under_way()
  std::vector<std::vector<Time>> arrivals_;  // forward_only_begins()
  std::vector<Time> loads_;                  // [rank]
  Switches switches_;
  Time limit_{0};
  bool is_hopeless_ = false;  // some rank's span reaches the limit
  Time most_idle_{0};
  std::vector<Line> lines_;
};

Schedule generate_zb_heuristic(const Problem& problem) {
  CostDriven scheduler(problem);
  Schedule best;
  Switches its;
  Time best_span = Time::max();
  const Time least = span_bound(problem);
  const auto consider = [&](const Switches& switches) {
    if (best_span <= least) return;
    std::optional<Schedule> schedule = scheduler.run(switches, best_span);
    if (!schedule) return;
    best_span = scheduler.longest_span();
    best = std::move(*schedule);
    its = switches;
  };
  for (const bool waits : {true, false}) {
    for (const bool gradient_first : {false, true}) {
      for (const bool never_idles : {false, true}) {
        consider({.waits_for_gradient = waits,
                  .gradient_first = gradient_first,
                  .never_idles = never_idles});
      }
    }
  }
  its.last_forward_yields = true;
  consider(its);
  return best;
}

}  // namespace

Family zb_heuristic() {
  return {.name = "zb-heuristic",
          .title = "ZB heuristic",
          .aliases = {"zb-auto"},
          .summary =
              "What costs and memory limit ask for: as many forwards first as fit, W where a rank "
              "would wait; the least span of nine greedy tries.",
          .constraints = "none; ZB-1p and ZB-2p at limits of p and 2p activations",
          .formula_text = "",
          .source = "Zero Bubble Pipeline Parallelism, arXiv 2401.10241, automatic scheduling",
          .splits_backward = true,
          .sibling = "interleaved-zb",
          .generate_for = generate_zb_heuristic};
}

}  // namespace counterflow

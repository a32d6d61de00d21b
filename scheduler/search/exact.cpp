#include "scheduler/search/exact.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/bounds/held_memory.h"
#include "scheduler/bounds/lines.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/bounds/memory_waits.h"
#include "scheduler/bounds/windows.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/search/dominance.h"

// The tree. Let o be the op that could end first, of all that could begin now, and r its rank. In
// some best schedule the next op of r begins before o would end: if it did not, o could go before
// it. So the children of a node are the ops of r that begin before then. Only where o is an F that
// takes memory may putting it first be wrong; then one more child keeps it back until r has run
// another op, which cannot begin before o would have ended.
//
// Equal microbatches go through every line in order, so a state is how many ops of each line are
// done, and when ranks are free and outputs arrive. What is held follows from the counts.
namespace counterflow {
namespace {

constexpr std::size_t kExactOps = 400;

class Tree {
 public:
  enum class Outcome : std::uint8_t { refuted, found, out_of_nodes };

  Tree(const Problem& problem, const Lines& lines) : lines_(lines), test_(problem, lines) {
    const std::vector<HeldMemory> held = held_memory(problem);
    takes_.assign(lines.size(), std::vector<std::int64_t>(held.size(), 0));
    gives_ = passes_ = takes_;
    for (std::size_t k = 0; k < held.size(); ++k) {
      limits_.push_back(held[k].limit);
      for (const HeldMemory::Part& part : held[k].parts) count(part, k);
      for (const HeldMemory::Part& part : held[k].passing) {
        set(passes_, OpKind::forward, part.chunk, k, part.whole);
      }
    }
  }

  [[nodiscard]] const WindowTest& test() const { return test_; }

  // Looks for an order with a makespan of at most this.
  Outcome search(std::int64_t makespan, std::int64_t nodes) {
    if (makespan > explored_) remembered_.clear();
    explored_ = makespan;
    makespan_ = makespan;
    nodes_left_ = nodes;
    State root;
    root.windows = test_.ways();
    root.done.assign(lines_.size(), 0);
    root.kept_back.assign(lines_.size(), 0);
    root.held.assign(limits_.size(), 0);
    root.free.assign(static_cast<std::size_t>(lines_.ranks()), 0);
    orders_.assign(root.free.size(), {});
    if (!test_.may_exist(makespan_)) return Outcome::refuted;
    for (Rank rank = 0; rank < lines_.ranks(); ++rank) {
      if (!test_.narrow(root.windows, makespan_, kRounds, rank)) return Outcome::refuted;
    }
    return explore(root);
  }
  [[nodiscard]] std::int64_t nodes_left() const { return nodes_left_; }
  // What `found` found.
  [[nodiscard]] const std::vector<std::vector<Slot>>& orders() const { return orders_; }

 private:
  struct State {
    Windows windows;
    std::vector<std::int32_t> done;       // [line]
    std::vector<std::uint8_t> kept_back;  // [line]
    std::vector<std::int64_t> held;       // [store]
    std::vector<std::int64_t> free;       // [rank]
  };
  struct Choice {
    std::uint32_t line = 0;
    std::uint32_t op = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  void set(std::vector<std::vector<std::int64_t>>& table, OpKind kind, const Chunk& chunk,
           std::size_t limit, std::int64_t amount) {
    const std::uint32_t line = lines_.find(kind, chunk);
    if (line != Lines::kNone) table[line][limit] = amount;
  }
  void count(const HeldMemory::Part& part, std::size_t limit) {
    const bool weight = lines_.find(OpKind::backward_weight, part.chunk) != Lines::kNone;
    const std::int64_t kept = weight ? part.kept : 0;
    set(takes_, OpKind::forward, part.chunk, limit, part.whole);
    set(gives_, OpKind::backward_input, part.chunk, limit, part.whole - kept);
    set(gives_, OpKind::backward_weight, part.chunk, limit, kept);
  }

  // The next op of a line, if it could begin now.
  [[nodiscard]] std::optional<Choice> next_of(const State& state, std::uint32_t line) const {
    const std::int32_t number = state.done[line];
    if (number >= lines_.count(line) || state.kept_back[line] != 0) return std::nullopt;
    for (const Line::Wait& wait : lines_[line].waits) {
      if (number >= wait.shift && number - wait.shift >= state.done[wait.line]) return std::nullopt;
    }
    for (std::size_t k = 0; k < limits_.size(); ++k) {
      const std::int64_t more = takes_[line][k] + passes_[line][k];
      if (more > 0 && state.held[k] + more > limits_[k]) return std::nullopt;
    }
    const auto op = static_cast<std::uint32_t>(lines_.op(line, number));
    const std::int64_t begin = state.windows.head[op];
    return Choice{line, op, begin, begin + lines_.duration(line, number)};
  }

  // The op that ends first, then the others of its rank that begin before, most urgent first.
  [[nodiscard]] std::pair<std::optional<Choice>, std::vector<Choice>> choices(
      const State& state) const {
    std::vector<Choice> all;
    std::optional<Choice> first;
    for (std::uint32_t line = 0; line < lines_.size(); ++line) {
      const auto choice = next_of(state, line);
      if (!choice) continue;
      all.push_back(*choice);
      if (!first || choice->end < first->end) first = choice;
    }
    if (!first) return {first, {}};
    const Rank rank = lines_[first->line].rank;
    const auto competes = [&](const Choice& choice) {
      return lines_[choice.line].rank == rank &&
             (choice.begin < first->end || choice.line == first->line);
    };
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const Choice& choice) { return !competes(choice); }),
              all.end());
    const auto latest = [&](const Choice& choice) {
      return makespan_ - state.windows.tail[choice.op] - (choice.end - choice.begin);
    };
    std::sort(all.begin(), all.end(), [&](const Choice& a, const Choice& b) {
      return std::pair(latest(a), a.line) < std::pair(latest(b), b.line);
    });
    return {first, all};
  }

  // Nothing else of the rank begins before `time` any more.
  void occupy(State& state, Rank rank, std::int64_t time) const {
    for (const std::uint32_t line : lines_.of_rank(rank)) {
      for (std::int32_t j = state.done[line]; j < lines_.count(line); ++j) {
        std::int64_t& head = state.windows.head[lines_.op(line, j)];
        head = std::max(head, time);
      }
    }
  }

  [[nodiscard]] State after(const State& state, const Choice& choice) const {
    State next = state;
    const Rank rank = lines_[choice.line].rank;
    ++next.done[choice.line];
    next.windows.tail[choice.op] = makespan_ - choice.end;
    next.free[static_cast<std::size_t>(rank)] = choice.end;
    for (const std::uint32_t line : lines_.of_rank(rank)) next.kept_back[line] = 0;
    for (std::size_t k = 0; k < limits_.size(); ++k) {
      next.held[k] += takes_[choice.line][k] - gives_[choice.line][k];
    }
    occupy(next, rank, choice.end);
    return next;
  }

  [[nodiscard]] bool takes_memory(std::uint32_t line) const {
    return std::any_of(takes_[line].begin(), takes_[line].end(),
                       [](std::int64_t amount) { return amount > 0; });
  }

  Outcome explore(const State& state) {
    const auto [first, all] = choices(state);
    if (!first) return complete(state) ? Outcome::found : Outcome::refuted;
    const Dominance::Key key = key_of(state);
    const Dominance::Times times = times_of(state);
    if (remembered_.covers(key, times)) return Outcome::refuted;
    for (const Choice& choice : all) {
      const auto rank = static_cast<std::size_t>(lines_[choice.line].rank);
      orders_[rank].push_back(slot_of(choice));
      const Outcome outcome = visit(after(state, choice), lines_[choice.line].rank);
      if (outcome != Outcome::refuted) return outcome;
      orders_[rank].pop_back();
    }
    if (takes_memory(first->line)) {
      State next = state;
      const Rank rank = lines_[first->line].rank;
      next.kept_back[first->line] = 1;
      next.free[static_cast<std::size_t>(rank)] = first->end;
      occupy(next, rank, first->end);
      const Outcome outcome = visit(std::move(next), rank);
      if (outcome != Outcome::refuted) return outcome;
    }
    remembered_.add(key, times);
    return Outcome::refuted;
  }

  Outcome visit(State state, Rank changed) {
    if (nodes_left_ == 0) return Outcome::out_of_nodes;
    --nodes_left_;
    if (!test_.narrow(state.windows, makespan_, kRounds, changed)) return Outcome::refuted;
    return explore(state);
  }

  [[nodiscard]] bool complete(const State& state) const {
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      if (state.done[line] < lines_.count(line)) return false;
    }
    return true;
  }

  [[nodiscard]] Slot slot_of(const Choice& choice) const {
    const Line& line = lines_[choice.line];
    const auto number = static_cast<std::int32_t>(choice.op - lines_.op(choice.line, 0));
    return {{line.kind, line.chunk.replica, static_cast<std::uint16_t>(line.chunk.stage),
             lines_.microbatch(choice.line, number)},
            {}};
  }

  [[nodiscard]] Dominance::Key key_of(const State& state) const {
    Dominance::Key key = state.done;
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      if (state.kept_back[line] != 0) key[line] = -1 - key[line];
    }
    return key;
  }

  // When each rank is free, and when what is under way arrives, if the rank could use it by then.
  [[nodiscard]] Dominance::Times times_of(const State& state) const {
    Dominance::Times times = state.free;
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      for (const Line::Wait& wait : lines_[line].waits) {
        if (lines_[wait.line].rank == lines_[line].rank) continue;
        for (std::int32_t j = state.done[line]; j < state.done[wait.line]; ++j) {
          const std::int64_t end = makespan_ - state.windows.tail[lines_.op(wait.line, j)];
          times.push_back(
              std::max(end + wait.delay, times[static_cast<std::size_t>(lines_[line].rank)]));
        }
      }
    }
    return times;
  }
  static constexpr int kRounds = 4;

  const Lines& lines_;
  WindowTest test_;
  std::vector<std::int64_t> limits_;               // every limit of every rank
  std::vector<std::vector<std::int64_t>> takes_;   // [line][limit] at begin, until another op ends
  std::vector<std::vector<std::int64_t>> gives_;   // [line][limit] at end
  std::vector<std::vector<std::int64_t>> passes_;  // [line][limit] while it runs
  std::int64_t makespan_ = 0;
  std::int64_t explored_ = 0;
  std::int64_t nodes_left_ = 0;
  Dominance remembered_;
  std::vector<std::vector<Slot>> orders_;
};

// Narrows the gap between bound and incumbent from both ends.
class Solver {
 public:
  Solver(const Problem& problem, const Lines& lines, ExactResult& result, std::int64_t nodes)
      : evaluator_(problem),
        tree_(problem, lines),
        grain_(tree_.test().grain()),
        result_(result),
        nodes_(nodes) {
    bound_ = up(result.bound.count());
    best_ =
        result.makespan >= Time{0} ? result.makespan.count() : up(tree_.test().longest()) + grain_;
  }

  void run() {
    for (std::int64_t share = kFirstShare; bound_ < best_ && result_.nodes < nodes_;) {
      if (!step(share)) share *= 2;
    }
    result_.bound = Time{std::min(bound_, best_)};
  }

 private:
  [[nodiscard]] std::int64_t up(std::int64_t time) const {
    return (time + grain_ - 1) / grain_ * grain_;
  }

  // Half way first, then ever nearer to the best known; last the least refutation.
  bool step(std::int64_t share) {
    for (std::int64_t below = (best_ - bound_) / 2;; below /= 4) {
      const std::int64_t rest = std::max(grain_, up(below));
      if (attempt(best_ - rest, share)) return true;
      if (rest == grain_) return attempt(bound_, share);
    }
  }

  // Is it decided whether a makespan of at most this can be had?
  bool attempt(std::int64_t makespan, std::int64_t share) {
    const std::int64_t nodes = std::min(share, nodes_ - result_.nodes);
    const Tree::Outcome outcome = tree_.search(makespan, nodes);
    result_.nodes += nodes - tree_.nodes_left();
    if (outcome == Tree::Outcome::out_of_nodes) return false;
    if (outcome == Tree::Outcome::refuted) {
      bound_ = makespan + grain_;
      return true;
    }
    result_.schedule = {"exact", tree_.orders()};
    result_.makespan = evaluator_.makespan(result_.schedule);
    best_ = result_.makespan.count();
    return true;
  }

  static constexpr std::int64_t kFirstShare = 250;

  Evaluator evaluator_;
  Tree tree_;
  std::int64_t grain_;
  ExactResult& result_;
  std::int64_t nodes_;
  std::int64_t bound_ = 0;
  std::int64_t best_ = 0;
};

}  // namespace

bool is_exactly_solvable(const Problem& problem) {
  const std::size_t most = 3 * static_cast<std::size_t>(problem.stages()) *
                           static_cast<std::size_t>(problem.microbatches);
  return problem.phases.empty() && problem.microbatches > 0 && problem.costs.uniform() &&
         problem.keeping.empty() && !pairs_may_save(problem) && !problem.links.has_bandwidth() &&
         most <= kExactOps;
}

ExactResult solve_exactly(const Problem& problem, const Schedule* incumbent,
                          const ExactBudget& budget) {
  ExactResult result;
  result.bound = lower_bound(problem, BoundEffort::full);
  if (incumbent != nullptr) {
    result.schedule = *incumbent;
    result.makespan = Evaluator(problem).makespan(*incumbent);
  }
  if (!is_exactly_solvable(problem) || result.optimal()) return result;
  Lines lines(problem);
  add_memory_waits(problem, lines);
  Solver(problem, lines, result, budget.nodes).run();
  return result;
}

}  // namespace counterflow

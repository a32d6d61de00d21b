#include "scheduler/search/model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/graph/channels.h"

namespace counterflow {
namespace {

using LaneId = SearchModel::LaneId;
using OpId = SearchModel::OpId;
using Edge = SearchModel::Edge;

constexpr std::size_t kBytes = 0;
constexpr std::size_t kActivations = 1;

// Fills a model in from its problem.
class Builder {
 public:
  Builder(const Problem& problem, SearchModel& model) : problem_(problem), model_(model) {
    const auto chunks = static_cast<std::size_t>(problem.stages()) *
                        static_cast<std::size_t>(problem.placement.replicas());
    forward_.assign(chunks, SearchModel::kNoLane);
    gradient_.assign(chunks, SearchModel::kNoLane);
    weight_.assign(chunks, SearchModel::kNoLane);
  }

  void build() {
    add_lanes();
    add_limits();
    add_edges();
    add_factors();
    add_pairs();
    add_ways();
  }

 private:
  [[nodiscard]] std::size_t chunk(int replica, Stage stage) const {
    return static_cast<std::size_t>(replica) * static_cast<std::size_t>(problem_.stages()) +
           static_cast<std::size_t>(stage);
  }

  LaneId add_lane(OpKind kind, const Chunk& at, Rank rank) {
    SearchModel::Lane lane;
    lane.kind = kind;
    lane.stage = at.stage;
    lane.replica = lane.direction = at.replica;
    lane.rank = rank;
    lane.count = static_cast<std::uint32_t>(model_.sequences[at.replica].size());
    const Op op{kind, at.replica, static_cast<std::uint16_t>(at.stage), 0};
    const StageCost& cost = problem_.costs.stages()[op.stage];
    const StageMemory& memory = problem_.memory[op.stage];
    const bool forward = kind == OpKind::forward;
    const bool has_gradient = problem_.needs_backward_input(at.stage);
    const bool has_weight = problem_.needs_backward_weight(at.stage);
    const bool last = kind == OpKind::backward || kind == OpKind::backward_weight ||
                      (kind == OpKind::backward_input && !has_weight) || (forward && !has_gradient);
    lane.duration = forward ? cost.forward.count()
                    : kind == OpKind::backward
                        ? (cost.backward_input + cost.backward_weight).count()
                    : kind == OpKind::backward_weight ? cost.backward_weight.count()
                                                      : cost.backward_input.count();
    if (forward) lane.allocated = {memory.activation.value, 1};
    const std::int64_t all = memory.activation.value;
    const std::int64_t kept = memory.kept_for_weight.value;
    lane.freed[kBytes] = kind == OpKind::backward_weight ? kept
                         : last                          ? all
                         : forward                       ? 0
                                                         : all - kept;
    lane.freed[kActivations] = last ? 1 : 0;
    lane.allocates = forward && has_gradient;
    model_.lanes.push_back(lane);
    return static_cast<LaneId>(model_.lanes.size() - 1);
  }

  void add_lanes() {
    const bool full = problem_.split_backward == SplitBackward::full;
    for (Rank rank = 0; rank < problem_.ranks(); ++rank) {
      model_.rank_begin.push_back(static_cast<LaneId>(model_.lanes.size()));
      for (const Chunk& at : problem_.placement.chunks_of(rank)) {
        const std::size_t c = chunk(at.replica, at.stage);
        forward_[c] = add_lane(OpKind::forward, at, rank);
        if (!problem_.needs_backward_input(at.stage)) continue;
        const bool weight = problem_.needs_backward_weight(at.stage);
        const bool joined = full && weight;
        gradient_[c] = add_lane(joined ? OpKind::backward : OpKind::backward_input, at, rank);
        if (weight && !joined) weight_[c] = add_lane(OpKind::backward_weight, at, rank);
      }
    }
    model_.rank_begin.push_back(static_cast<LaneId>(model_.lanes.size()));
    model_.weight_lane.assign(model_.lanes.size(), SearchModel::kNoLane);
    for (std::size_t c = 0; c < gradient_.size(); ++c) {
      if (gradient_[c] != SearchModel::kNoLane) model_.weight_lane[gradient_[c]] = weight_[c];
    }
  }

  void add_limits() {
    const MemoryLimits& limits = problem_.limits;
    for (std::size_t rank = 0; rank < model_.ranks(); ++rank) {
      SearchModel::Amount limit{SearchModel::kUnlimited, SearchModel::kUnlimited};
      if (!limits.bytes.empty()) {
        const std::int64_t fixed =
            limits.static_memory.empty() ? 0 : limits.static_memory[rank].value;
        limit[kBytes] = std::min(limit[kBytes], limits.bytes[rank].value - fixed);
      }
      if (!limits.activations.empty()) {
        limit[kActivations] = std::min(limit[kActivations], limits.activations[rank]);
      }
      model_.has_limits |=
          limit[kBytes] < SearchModel::kUnlimited || limit[kActivations] < SearchModel::kUnlimited;
      model_.limits.push_back(limit);
    }
  }

  void connect(LaneId from, LaneId to, std::int64_t lag = 0, std::int64_t occupancy = 0) {
    if (from == SearchModel::kNoLane || to == SearchModel::kNoLane) return;
    in_[to].push_back({from, lag, occupancy});
    out_[from].push_back({to, lag, occupancy});
  }

  void add_edges() {
    in_.resize(model_.lanes.size());
    out_.resize(model_.lanes.size());
    const Channels channels(problem_);
    for (Channels::Id id = 0; id < channels.size(); ++id) {
      const Channels::Channel& c = channels[id];
      const auto& table = c.kind == PayloadKind::activation ? forward_ : gradient_;
      const std::int64_t occupancy =
          c.crosses_ranks() ? problem_.links.occupancy(c.size).count() : 0;
      connect(table[chunk(c.replica, c.from)], table[chunk(c.replica, c.to)],
              problem_.links.latency(c.source, c.destination).count() + occupancy, occupancy);
    }
    for (std::size_t c = 0; c < forward_.size(); ++c) {
      // Where a gradient comes from a later stage, F is implied: that stage's own F needed it.
      const bool implied = gradient_[c] != SearchModel::kNoLane && !in_[gradient_[c]].empty();
      if (!implied) connect(forward_[c], gradient_[c]);
      connect(gradient_[c], weight_[c]);
    }
    flatten(in_, model_.in_begin, model_.in_edges);
    flatten(out_, model_.out_begin, model_.out_edges);
    for (LaneId lane = 0; lane < model_.lanes.size(); ++lane) {
      model_.lanes[lane].inputs = static_cast<std::uint32_t>(in_[lane].size());
    }
    model_.limited_links = problem_.links.has_bandwidth();
  }

  static void flatten(const std::vector<std::vector<Edge>>& rows, std::vector<std::uint32_t>& begin,
                      std::vector<Edge>& edges) {
    for (const auto& row : rows) {
      begin.push_back(static_cast<std::uint32_t>(edges.size()));
      edges.insert(edges.end(), row.begin(), row.end());
    }
    begin.push_back(static_cast<std::uint32_t>(edges.size()));
  }

  void add_factors() {
    if (problem_.costs.uniform()) return;
    model_.durations.assign(model_.ops(), 0);
    model_.allocations.assign(model_.ops(), 0);
    model_.releases.assign(model_.ops(), 0);
    for (LaneId lane = 0; lane < model_.lanes.size(); ++lane) {
      for (std::uint32_t number = 0; number < model_.lanes[lane].count; ++number) {
        const OpId id = model_.id(lane, number);
        const Op op = model_.op(id);
        model_.durations[id] = problem_.costs.duration(op).count();
        model_.allocations[id] = problem_.allocated(op).value;
        model_.releases[id] = problem_.freed(op).value;
      }
    }
  }

  void add_pairs() {
    if (problem_.costs.pairs().empty()) return;
    for (std::size_t rank = 0; rank < model_.ranks(); ++rank) {
      model_.pair_width =
          std::max(model_.pair_width, model_.rank_begin[rank + 1] - model_.rank_begin[rank]);
    }
    model_.pair_table.assign(model_.lanes.size() * model_.pair_width, -1);
    for (LaneId f = 0; f < model_.lanes.size(); ++f) {
      if (model_.lanes[f].kind != OpKind::forward) continue;
      const auto rank = static_cast<std::size_t>(model_.lanes[f].rank);
      for (LaneId g = model_.rank_begin[rank]; g < model_.rank_begin[rank + 1]; ++g) {
        add_pair(f, g, model_.rank_begin[rank]);
      }
    }
  }

  void add_pair(LaneId f, LaneId g, LaneId first) {
    const SearchModel::Lane& forward = model_.lanes[f];
    const SearchModel::Lane& gradient = model_.lanes[g];
    if (!makes_input_gradient(gradient.kind)) return;
    std::int64_t parts = forward.duration + gradient.duration;
    if (const LaneId w = model_.weight_lane[g]; w != SearchModel::kNoLane) {
      parts += model_.lanes[w].duration;
    }
    const Time pair = problem_.costs.pairs().find(forward.stage, gradient.stage);
    if (pair < Time{0} || pair.count() >= parts) return;
    model_.pair_table[f * model_.pair_width + (g - first)] = pair.count();
    model_.has_pairs = true;
  }

  void add_ways() {
    // Lanes in an order that respects the edges: F by stage, then G against it, then W.
    std::vector<LaneId> order(model_.lanes.size());
    for (LaneId lane = 0; lane < order.size(); ++lane) order[lane] = lane;
    const auto place = [this](LaneId id) {
      const SearchModel::Lane& lane = model_.lanes[id];
      if (lane.kind == OpKind::forward) return std::pair(0, lane.stage);
      if (lane.kind == OpKind::backward_weight) return std::pair(2, lane.stage);
      return std::pair(1, -lane.stage);
    };
    std::ranges::stable_sort(order, {}, place);
    for (const LaneId lane : order) {
      for (const Edge& edge : model_.inputs(lane)) {
        const SearchModel::Lane& from = model_.lanes[edge.lane];
        model_.lanes[lane].head =
            std::max(model_.lanes[lane].head, from.head + from.duration + edge.lag);
      }
    }
    for (auto lane = order.rbegin(); lane != order.rend(); ++lane) {
      for (const Edge& edge : model_.outputs(*lane)) {
        const SearchModel::Lane& to = model_.lanes[edge.lane];
        model_.lanes[*lane].tail =
            std::max(model_.lanes[*lane].tail, edge.lag + to.duration + to.tail);
      }
    }
  }

  const Problem& problem_;
  SearchModel& model_;
  std::vector<LaneId> forward_, gradient_, weight_;  // [chunk]
  std::vector<std::vector<Edge>> in_, out_;          // [lane]
};

std::vector<std::vector<Microbatch>> ascending(const Problem& problem) {
  std::vector<std::vector<Microbatch>> sequences(
      static_cast<std::size_t>(problem.placement.replicas()));
  for (Microbatch mb = 0; mb < problem.microbatches; ++mb) {
    sequences[static_cast<std::size_t>(problem.replica_of(mb))].push_back(mb);
  }
  return sequences;
}

bool is_chain(const StageGraph& graph) {
  for (Stage s = 0; s < graph.stages(); ++s) {
    const auto before = graph.predecessors(s);
    if (before.size() != (s == 0 ? 0U : 1U) || (s > 0 && before.front() != s - 1)) return false;
  }
  return true;
}

}  // namespace

SearchModel::SearchModel(const Problem& its_problem, std::vector<std::vector<Microbatch>> sequence)
    : problem(&its_problem),
      chain(is_chain(its_problem.graph)),
      sequences(sequence.empty() ? ascending(its_problem) : std::move(sequence)) {
  for (const auto& each : sequences) {
    stride = std::max(stride, static_cast<std::uint32_t>(each.size()));
  }
  Builder(its_problem, *this).build();
  rank_head.assign(ranks(), 0);
  rank_tail.assign(ranks(), 0);
}

void SearchModel::aim_at_span() {
  std::vector<std::int64_t> first(ranks(), kUnlimited);
  for (const Lane& lane : lanes) {
    std::int64_t& its = first[static_cast<std::size_t>(lane.rank)];
    its = std::min(its, lane.head);
  }
  const std::int64_t latest = first.empty() ? 0 : *std::ranges::max_element(first);
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    rank_tail[rank] = std::max<std::int64_t>(0, latest - first[rank]);
  }
  for (Lane& lane : lanes) {
    lane.tail = std::max(lane.tail, rank_tail[static_cast<std::size_t>(lane.rank)]);
  }
}

SearchModel SearchModel::reversed() const {
  SearchModel back(*this);
  back.is_reversed = !is_reversed;
  std::swap(back.in_begin, back.out_begin);
  std::swap(back.in_edges, back.out_edges);
  std::swap(back.rank_head, back.rank_tail);
  for (auto& sequence : back.sequences) std::ranges::reverse(sequence);
  for (LaneId id = 0; id < back.lanes.size(); ++id) {
    Lane& lane = back.lanes[id];
    std::swap(lane.allocated, lane.freed);
    std::swap(lane.head, lane.tail);
    lane.inputs = static_cast<std::uint32_t>(back.inputs(id).size());
    const auto turn = [&](std::vector<std::int64_t>& table) {
      if (table.empty()) return;
      const auto first = table.begin() + static_cast<std::ptrdiff_t>(back.id(id, 0));
      std::reverse(first, first + lane.count);
    };
    turn(back.durations);
    turn(back.allocations);
    turn(back.releases);
  }
  std::swap(back.allocations, back.releases);
  // A lane that only passes memory through (its op allocates and frees) holds nothing.
  for (Lane& lane : back.lanes) {
    lane.allocates = false;
    for (std::size_t r = 0; r < kResources; ++r) {
      lane.allocates |= lane.allocated[r] > 0 && lane.freed[r] < lane.allocated[r];
    }
  }
  return back;
}

std::int64_t SearchModel::pair_duration(LaneId forward, OpId f, LaneId gradient, OpId g) const {
  const LaneId first = rank_begin[static_cast<std::size_t>(lanes[forward].rank)];
  const std::int64_t pair = pair_table[forward * pair_width + (gradient - first)];
  if (pair < 0 || durations.empty()) return pair;
  std::int64_t parts = durations[f] + durations[g];
  Op backward = op(g);
  if (const LaneId w = weight_lane[gradient]; w != kNoLane) {
    backward.kind = OpKind::backward;
    parts += durations[id(w, number_of(g))];
  }
  const std::int64_t scaled = problem->costs.duration(op(f), backward).count();
  return scaled < parts ? scaled : -1;
}

LaneId SearchModel::last_of_copy(LaneId lane) const {
  while (lane + 1 < lanes.size() && lanes[lane + 1].rank == lanes[lane].rank &&
         lanes[lane + 1].stage == lanes[lane].stage &&
         lanes[lane + 1].replica == lanes[lane].replica) {
    ++lane;
  }
  return lane;
}

Op SearchModel::op(OpId id) const {
  const Lane& lane = lanes[lane_of(id)];
  return {lane.kind, lane.replica, static_cast<std::uint16_t>(lane.stage),
          sequences[lane.direction][number_of(id)]};
}

Schedule SearchModel::schedule(const Orders& orders) const {
  Schedule result;
  result.ranks.resize(orders.size());
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    for (std::size_t i = 0; i < orders[rank].size(); ++i) {
      Slot slot{op(orders[rank][i] & ~kFused), {}};
      if ((orders[rank][i] & kFused) != 0) {
        const OpId second = orders[rank][++i];
        slot.second = op(second);
        if (weight_lane[lane_of(second)] != kNoLane) slot.second.kind = OpKind::backward;
      }
      result.ranks[rank].push_back(slot);
    }
  }
  return result;
}

namespace {

// Finds the ids of a problem's ops.
class Finder {
 public:
  explicit Finder(const SearchModel& model) : model_(model) {
    const Problem& problem = *model.problem;
    number_.assign(static_cast<std::size_t>(problem.microbatches), 0);
    for (const auto& sequence : model.sequences) {
      for (std::size_t number = 0; number < sequence.size(); ++number) {
        number_[static_cast<std::size_t>(sequence[number])] = static_cast<std::uint32_t>(number);
      }
    }
    const auto cells = static_cast<std::size_t>(problem.stages()) *
                       static_cast<std::size_t>(problem.placement.replicas());
    for (auto& table : lane_) table.assign(cells, SearchModel::kNoLane);
    for (LaneId lane = 0; lane < model.lanes.size(); ++lane) {
      const SearchModel::Lane& each = model.lanes[lane];
      lane_[kind_index(each.kind)][cell(each.replica, each.stage)] = lane;
    }
  }

  // The id of an op, kNoLane's where the model has no such lane.
  [[nodiscard]] LaneId lane(OpKind kind, const Op& op) const {
    return lane_[kind_index(kind)][cell(op.replica, op.stage)];
  }
  [[nodiscard]] OpId id(LaneId lane, const Op& op) const {
    return model_.id(lane, number_[static_cast<std::size_t>(op.microbatch)]);
  }

 private:
  // I and B share a lane.
  static std::size_t kind_index(OpKind kind) {
    return kind == OpKind::forward ? 0 : kind == OpKind::backward_weight ? 2 : 1;
  }
  [[nodiscard]] std::size_t cell(int replica, Stage stage) const {
    return static_cast<std::size_t>(replica) * static_cast<std::size_t>(model_.problem->stages()) +
           static_cast<std::size_t>(stage);
  }

  const SearchModel& model_;
  std::vector<std::uint32_t> number_;        // [microbatch]
  std::array<std::vector<LaneId>, 3> lane_;  // [F, G, W][chunk]
};

void append(const SearchModel& model, const Finder& finder, const Op& op,
            std::vector<OpId>& order) {
  const LaneId lane = finder.lane(op.kind, op);
  order.push_back(finder.id(lane, op));
  if (op.kind != OpKind::backward) return;
  if (const LaneId w = model.weight_lane[lane]; w != SearchModel::kNoLane) {
    order.push_back(finder.id(w, op));
  }
}

}  // namespace

SearchModel::Orders SearchModel::orders(const Schedule& schedule) const {
  const Finder finder(*this);
  Orders result(ranks());
  for (std::size_t rank = 0; rank < result.size(); ++rank) {
    std::vector<OpId>& order = result[rank];
    order.reserve(schedule.ranks[rank].size());
    for (const Slot& slot : schedule.ranks[rank]) {
      if (slot.is_pair() && has_pairs) {
        const LaneId f = finder.lane(slot.first.kind, slot.first);
        const LaneId g = finder.lane(slot.second.kind, slot.second);
        const OpId first = finder.id(f, slot.first);
        const OpId second = finder.id(g, slot.second);
        if (pair_duration(f, first, g, second) >= 0) {
          order.push_back(first | kFused);
          order.push_back(second);
          continue;
        }
      }
      append(*this, finder, slot.first, order);
      if (slot.is_pair()) append(*this, finder, slot.second, order);
    }
  }
  return result;
}

namespace {

// Does a stage feed another, directly or not?
bool feeds(const StageGraph& graph, Stage from, Stage to) {
  std::vector<std::uint8_t> reached(static_cast<std::size_t>(graph.stages()), 0);
  reached[static_cast<std::size_t>(to)] = 1;
  for (Stage s = to; s > from; --s) {
    if (reached[static_cast<std::size_t>(s)] == 0) continue;
    for (const Stage before : graph.predecessors(s)) reached[static_cast<std::size_t>(before)] = 1;
  }
  return reached[static_cast<std::size_t>(from)] != 0;
}

// What one microbatch alone holds on the rank when this F begins: the stages that feed it there
// cannot have been freed, for their gradients need its own.
SearchModel::Amount held_at(const SearchModel& model, LaneId to, std::uint32_t number) {
  const SearchModel::Lane& lane = model.lanes[to];
  SearchModel::Amount held{};
  for (LaneId from = model.rank_begin[static_cast<std::size_t>(lane.rank)]; from <= to; ++from) {
    const SearchModel::Lane& other = model.lanes[from];
    if (from != to) {
      if (!other.allocates || other.direction != lane.direction) continue;
      if (!model.chain && !feeds(model.problem->graph, other.stage, lane.stage)) continue;
    }
    for (int r = 0; r < SearchModel::kResources; ++r) {
      held[static_cast<std::size_t>(r)] += model.allocated(from, model.id(from, number), r);
    }
  }
  return held;
}

}  // namespace

std::vector<SearchModel::Amount> least_memory(const SearchModel& model) {
  std::vector<SearchModel::Amount> least(model.ranks());
  for (LaneId id = 0; id < model.lanes.size(); ++id) {
    const SearchModel::Lane& lane = model.lanes[id];
    if (lane.kind != OpKind::forward) continue;
    const std::uint32_t count = model.allocations.empty() ? std::min(lane.count, 1U) : lane.count;
    for (std::uint32_t number = 0; number < count; ++number) {
      const SearchModel::Amount held = held_at(model, id, number);
      SearchModel::Amount& most = least[static_cast<std::size_t>(lane.rank)];
      for (std::size_t r = 0; r < SearchModel::kResources; ++r)
        most[r] = std::max(most[r], held[r]);
    }
  }
  return least;
}

std::optional<MemoryShortage> memory_shortage(const SearchModel& model) {
  if (!model.has_limits) return std::nullopt;
  const std::vector<SearchModel::Amount> least = least_memory(model);
  for (std::size_t rank = 0; rank < model.ranks(); ++rank) {
    for (int resource = 0; resource < SearchModel::kResources; ++resource) {
      const auto r = static_cast<std::size_t>(resource);
      if (least[rank][r] <= model.limits[rank][r]) continue;
      return MemoryShortage{static_cast<Rank>(rank), resource, least[rank][r],
                            model.limits[rank][r]};
    }
  }
  return std::nullopt;
}

}  // namespace counterflow

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
    if (has_gradient) add_keeping(lane);
    model_.lanes.push_back(lane);
    return static_cast<LaneId>(model_.lanes.size() - 1);
  }

  // The ops that move activations out or bring them back are part of F and G.
  void add_keeping(SearchModel::Lane& lane) {
    const Keeping keeping = problem_.keeping_of(lane.stage);
    if (keeping.kind == KeepingKind::all) return;
    const auto stage = static_cast<std::size_t>(lane.stage);
    const StageCost& cost = problem_.costs.stages()[stage];
    const std::int64_t moved = (problem_.memory[stage].activation - keeping.kept).value;
    if (lane.kind == OpKind::forward) {
      lane.duration += cost.store.count();
      lane.freed[kBytes] = moved;
    } else if (makes_input_gradient(lane.kind)) {
      lane.duration += cost.restore.count();
      lane.allocated[kBytes] = moved;
    }
    model_.restores = true;
  }

  [[nodiscard]] std::int64_t ahead_of_end(Stage stage) const {
    // On a link where messages queue it counts when each enters: the end of the whole op.
    if (problem_.links.has_bandwidth()) return 0;
    return problem_.needs_backward_input(stage)
               ? ahead(problem_.keeping_of(stage).store_kind(), stage)
               : 0;
  }
  [[nodiscard]] std::int64_t ahead_of_gradient(Stage stage) const {
    return ahead(problem_.keeping_of(stage).restore_kind(), stage);
  }

  // By how much an op's message may leave before its end, or arrive after its begin, whatever the
  // microbatch.
  [[nodiscard]] std::int64_t ahead(OpKind kind, Stage stage) const {
    if (kind == OpKind::none) return 0;
    const Op op{kind, 0, static_cast<std::uint16_t>(stage), 0};
    std::int64_t least = problem_.costs.duration(op).count();
    if (problem_.costs.uniform()) return least;
    for (Microbatch mb = 1; mb < problem_.microbatches; ++mb) {
      least = std::min(least, problem_.costs.duration({kind, 0, op.stage, mb}).count());
    }
    return least;
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
      const bool forward = c.kind == PayloadKind::activation;
      const auto& table = forward ? forward_ : gradient_;
      const std::int64_t occupancy =
          c.crosses_ranks() ? problem_.links.occupancy(c.wire).count() : 0;
      connect(table[chunk(c.replica, c.from)], table[chunk(c.replica, c.to)],
              problem_.links.alone(c.source, c.destination, c.wire).count() -
                  (forward ? ahead_of_end(c.from) : ahead_of_gradient(c.to)),
              occupancy);
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
        for (const Op& op : with_restores(problem_, model_.op(id))) {
          model_.durations[id] += problem_.costs.duration(op).count();
          model_.allocations[id] += problem_.allocated(op).value;
          model_.releases[id] += problem_.freed(op).value;
        }
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
    const StageCost& cost = problem_.costs.stages()[static_cast<std::size_t>(forward.stage)];
    const StageCost& other = problem_.costs.stages()[static_cast<std::size_t>(gradient.stage)];
    const Time whole = other.restore + pair + cost.store;
    if (pair < Time{0} || whole.count() >= parts) return;
    model_.pair_table[f * model_.pair_width + (g - first)] = whole.count();
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
  std::int64_t scaled = problem->costs.duration(op(f), backward).count();
  for (const Op& half : {op(f), backward}) {
    for (const Op& part : with_restores(*problem, half)) {
      if (part.kind != half.kind) scaled += problem->costs.duration(part).count();
    }
  }
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

}  // namespace counterflow

#include "scheduler/graph/dependencies.h"

#include <algorithm>
#include <limits>

#include "scheduler/graph/channels.h"

namespace counterflow {
namespace {

constexpr Vertex kNoVertex = std::numeric_limits<Vertex>::max();

// Which vertex runs an op: the forward, the backward or input gradient, the weight gradient, what
// moves activations out or brings them back, of each stage copy and microbatch.
class OpTable {
 public:
  explicit OpTable(const Problem& problem)
      : stages_(static_cast<std::size_t>(problem.stages())),
        microbatches_(static_cast<std::size_t>(problem.microbatches)) {
    const std::size_t cells =
        stages_ * microbatches_ * static_cast<std::size_t>(problem.placement.replicas());
    for (auto* table : {&forward_, &gradient_, &weight_}) table->assign(cells, kNoVertex);
    if (problem.keeping.empty()) return;
    for (auto* table : {&stored_, &restored_}) table->assign(cells, kNoVertex);
  }
  Vertex& of(const Op& op) {
    auto& table = op.kind == OpKind::forward           ? forward_
                  : op.kind == OpKind::backward_weight ? weight_
                  : op.kind == OpKind::offload         ? stored_
                  : restores_or_stores(op.kind)        ? restored_
                                                       : gradient_;
    if (table.empty()) return nowhere_ = kNoVertex;  // an op the problem does not have
    return table[(static_cast<std::size_t>(op.replica) * stages_ + op.stage) * microbatches_ +
                 static_cast<std::size_t>(op.microbatch)];
  }

 private:
  std::size_t stages_;
  std::size_t microbatches_;
  std::vector<Vertex> forward_, gradient_, weight_, stored_, restored_;
  Vertex nowhere_ = kNoVertex;
};

Op with(const Op& op, OpKind kind, Stage stage) {
  return {kind, op.replica, static_cast<std::uint16_t>(stage), op.microbatch};
}

void add_inputs(DigraphBuilder& builder, OpTable& table, const Channels& channels,
                const Problem& problem, const Op& op, Vertex vertex) {
  const auto add = [&](const Op& needed, Reason reason) {
    const Vertex from = table.of(needed);
    if (from != kNoVertex && from != vertex) builder.add(from, vertex, reason);
  };
  if (op.kind == OpKind::backward_weight) {
    add(with(op, OpKind::backward_input, op.stage), Reason::weight);
    return;
  }
  if (op.kind == OpKind::reload) {
    add(with(op, OpKind::offload, op.stage), Reason::stash);
    return;
  }
  if (op.kind != OpKind::forward) add(with(op, OpKind::forward, op.stage), Reason::stash);
  if (restores_or_stores(op.kind)) return;
  if (op.kind != OpKind::forward && problem.restores(op.stage, op.microbatch)) {
    add(with(op, problem.keeping_of(op.stage).restore_kind(), op.stage), Reason::stash);
  }
  for (const Channels::Id id : channels.inputs(op)) {
    const Stage from = channels[id].from;
    const bool forward = op.kind == OpKind::forward;
    add(with(op, forward ? OpKind::forward : OpKind::backward_input, from),
        forward ? Reason::activation : Reason::gradient);
  }
}

}  // namespace

Dependencies::Dependencies(const Problem& problem, const Schedule& schedule) {
  OpTable table(problem);
  const Channels channels(problem);
  Vertex vertex = 0;
  for (const auto& order : schedule.ranks) {
    bases_.push_back(vertex);
    for (const Slot& slot : order) {
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind != OpKind::none && table.of(op) == kNoVertex) table.of(op) = vertex;
      }
      ++vertex;
    }
  }
  bases_.push_back(vertex);
  DigraphBuilder builder;
  builder.reserve(3 * static_cast<std::size_t>(vertex));
  vertex = 0;
  for (const auto& order : schedule.ranks) {
    for (std::size_t position = 0; position < order.size(); ++position, ++vertex) {
      // Data first: where a slot waits for the one before it for two reasons, that one is told.
      for (const Op& op : {order[position].first, order[position].second}) {
        if (op.kind != OpKind::none) add_inputs(builder, table, channels, problem, op, vertex);
      }
      if (position > 0) builder.add(vertex - 1, vertex, Reason::order);
    }
  }
  graph_ = std::move(builder).build(vertex);
}

Dependencies::Place Dependencies::place(Vertex vertex) const {
  const auto next = std::ranges::upper_bound(bases_, vertex);
  const auto rank = static_cast<std::size_t>(next - bases_.begin()) - 1;
  return {static_cast<Rank>(rank), vertex - bases_[rank]};
}

CriticalPath critical_path(const Problem& problem, const Schedule& schedule,
                           const Dependencies& dependencies) {
  const Digraph& graph = dependencies.graph();
  const std::size_t size = num_vertices(graph);
  std::vector<Time> duration(size);
  std::vector<Rank> rank_of(size);
  for (Vertex v = 0; v < size; ++v) {
    const auto [rank, position] = dependencies.place(v);
    rank_of[v] = rank;
    duration[v] = problem.duration(schedule.ranks[static_cast<std::size_t>(rank)][position]);
  }
  const auto hop = [&](Vertex from, Vertex to) {
    return problem.links.latency(rank_of[from], rank_of[to]);
  };
  CriticalPath result;
  result.begin.assign(size, Time{0});
  std::vector<Vertex> because(size, kNoVertex);
  const std::vector<Vertex> order = topological_order(graph);
  for (const Vertex u : order) {
    for (auto [edge, end] = out_edges(u, graph); edge != end; ++edge) {
      const Vertex v = target(*edge, graph);
      const Time at = result.begin[u] + duration[u] + hop(u, v);
      if (because[v] == kNoVertex || at > result.begin[v]) because[v] = u;
      result.begin[v] = std::max(result.begin[v], at);
    }
  }
  Vertex last = kNoVertex;
  for (const Vertex v : order) {
    if (last == kNoVertex || result.begin[v] + duration[v] > result.begin[last] + duration[last]) {
      last = v;
    }
  }
  if (last == kNoVertex) return result;
  const Time makespan = result.begin[last] + duration[last];
  result.slack.assign(size, Time{0});
  for (auto u = order.rbegin(); u != order.rend(); ++u) {
    Time latest = makespan - duration[*u];
    for (auto [edge, end] = out_edges(*u, graph); edge != end; ++edge) {
      const Vertex v = target(*edge, graph);
      latest = std::min(latest, result.begin[v] + result.slack[v] - hop(*u, v) - duration[*u]);
    }
    result.slack[*u] = latest - result.begin[*u];
  }
  for (Vertex v = last; v != kNoVertex; v = because[v]) result.path.push_back(v);
  std::ranges::reverse(result.path);
  return result;
}

}  // namespace counterflow

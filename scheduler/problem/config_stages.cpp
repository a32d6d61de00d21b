#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/stage_graph.h"
#include "scheduler/problem/config_sections.h"

namespace counterflow {
namespace {

Time read_duration(const Cursor& at) {
  return at.duration();
}
Bytes read_size(const Cursor& at) {
  return at.size();
}
int read_stage(const Cursor& at) {
  return at.small_integer(0, kMaxStages - 1);
}

struct PairEntry {
  Located<int> forward;
  Located<int> backward;
  Time cost{0};
};

PairEntry read_pair(const Cursor& at, std::set<std::pair<int, int>>& seen) {
  const auto entry = at.tuple(3, "an entry [forward stage, backward stage, cost]");
  PairEntry pair;
  pair.forward = entry[0].located(read_stage);
  pair.backward = entry[1].located(read_stage);
  pair.cost = entry[2].duration();
  if (!seen.emplace(pair.forward.value, pair.backward.value).second) {
    at.fail(fmt::format("the pair {}, {} is given twice; remove one", pair.forward.value,
                        pair.backward.value));
  }
  return pair;
}

void read_overlapped(const Cursor& at, Config& config) {
  config.overlapped.where = at.where();
  if (!at.is_map()) {
    config.overlapped.value.set_default(at.duration());
    return;
  }
  at.allow_keys({"default", "pairs"});
  const auto rest = at.find("default");
  const auto pairs = at.find("pairs");
  if (!rest && !pairs) at.fail("an empty map; give default, pairs or both");
  if (rest) config.overlapped.value.set_default(rest->duration());
  if (!pairs) return;
  std::set<std::pair<int, int>> seen;
  const auto entries = pairs->list_of("entries [forward stage, backward stage, cost]",
                                      [&](const Cursor& c) { return read_pair(c, seen); });
  for (const PairEntry& pair : entries) {
    config.overlapped.value.set(pair.forward.value, pair.backward.value, pair.cost);
    config.overlapped_stages.emplace_back(pair.forward, pair.backward);
  }
}

std::vector<StageGraph::Edge> read_graph(const Cursor& at) {
  std::set<std::pair<int, int>> seen;
  return at.list_of("edges [from, to]", [&](const Cursor& c) {
    const auto ends = c.tuple(2, "an edge [from, to]");
    const StageGraph::Edge edge{read_stage(ends[0]), read_stage(ends[1])};
    if (edge.first >= edge.second) {
      c.fail(
          fmt::format("the edge {} to {} does not ascend; number the stages so that each feeds "
                      "only higher ones",
                      edge.first, edge.second));
    }
    if (!seen.insert(edge).second) {
      c.fail(fmt::format("the edge {} to {} is given twice; remove one", edge.first, edge.second));
    }
    return edge;
  });
}

std::vector<int> read_frozen(const Cursor& at) {
  std::set<int> seen;
  return at.list_of("stage numbers", [&](const Cursor& c) {
    const int stage = read_stage(c);
    if (!seen.insert(stage).second) c.fail(fmt::format("{} is given twice; remove one", stage));
    return stage;
  });
}

}  // namespace

void read_stages(const Cursor& at, Config& config) {
  at.allow_keys({"forward", "backward_input", "backward_weight", "overlapped", "activation",
                 "weight_activation", "recompute", "offload", "graph", "frozen", "time_unit"});
  config.stages_where = at.where();
  config.forward = at.at("forward", "18.522ms").per_item(read_duration);
  if (const auto c = at.find("backward_input")) config.backward_input = c->per_item(read_duration);
  if (const auto c = at.find("backward_weight")) {
    config.backward_weight = c->per_item(read_duration);
  }
  if (const auto c = at.find("overlapped")) read_overlapped(*c, config);
  if (const auto c = at.find("activation")) config.activation = c->per_item(read_size);
  if (const auto c = at.find("weight_activation")) {
    if (!config.activation) {
      c->fail("given without stages.activation, of which it is a part; give both");
    }
    config.weight_activation = c->per_item(read_size);
  }
  read_keeping(at, config);
  if (const auto c = at.find("graph")) config.graph = c->located(read_graph);
  if (const auto c = at.find("frozen")) config.frozen = c->located(read_frozen);
}

}  // namespace counterflow

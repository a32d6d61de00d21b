#include "scheduler/problem/config.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>

#include "scheduler/problem/config_sections.h"
#include "scheduler/problem/cursor.h"
#include "scheduler/problem/yaml_tree.h"

namespace counterflow {
namespace {

Bytes read_size(const Cursor& at) {
  return at.size();
}

ExecutionModel read_preset(const Cursor& at) {
  return *ExecutionModel::preset(at.choice({"ideal", "nccl", "gloo"}));
}

ExecutionModel read_execution(const Cursor& at) {
  if (!at.is_map()) return read_preset(at);
  at.allow_keys({"preset", "semantics", "independent_transfers", "serial_communicators",
                 "launch_order", "hardware_queues"});
  const auto preset = at.find("preset");
  const ExecutionModel base = preset ? read_preset(*preset) : ExecutionModel::ideal();
  ExecutionModel model = base;
  if (const auto c = at.find("semantics")) {
    model.semantics = *semantics_named(c->choice({"buffered", "posted", "rendezvous"}));
  }
  if (const auto c = at.find("independent_transfers")) model.independent_transfers = c->boolean();
  if (const auto c = at.find("serial_communicators")) model.serial_communicators = c->boolean();
  if (const auto c = at.find("launch_order")) {
    model.launch_order = *launch_order_named(c->choice({"independent", "chained", "serial"}));
  }
  if (const auto c = at.find("hardware_queues")) model.hardware_queues = c->small_integer(0, 1024);
  if (model != base) model.name = "custom";
  return model;
}

void read_memory(const Cursor& at, Config& config) {
  at.allow_keys({"limit", "limit_activations", "static"});
  if (const auto c = at.find("limit")) {
    const bool layers_say = config.layers && config.layers->has_activation;
    if (!config.activation && !layers_say && !at.find("static")) {
      c->fail(
          fmt::format("given without {}, so there is nothing to limit; add for example "
                      "activation: 100MiB, or use memory.limit_activations",
                      config.layers ? "the activation of any layer" : "stages.activation"));
    }
    config.memory_limit = c->per_item(read_size);
  }
  if (const auto c = at.find("limit_activations")) {
    config.activation_limit = c->per_item(
        [](const Cursor& one) { return one.integer(1, std::numeric_limits<int>::max()); });
  }
  if (const auto c = at.find("static")) config.static_memory = c->per_item(read_size);
}

std::string_view read_time_unit(const std::optional<Cursor>& at) {
  return at ? at->choice({"ns", "us", "ms", "s"}) : std::string_view();
}

// The unit of bare durations, which either of two keys may give.
std::string_view bare_time_unit(const Cursor& root, const std::optional<Cursor>& stages) {
  const auto units = root.find("units");
  if (units) units->allow_keys({"time"});
  const std::string_view general = read_time_unit(units ? units->find("time") : std::nullopt);
  const auto own = stages ? stages->find("time_unit") : std::nullopt;
  const std::string_view local = read_time_unit(own);
  if (!general.empty() && !local.empty() && general != local) {
    own->fail(
        fmt::format("{} contradicts units.time, which is {}; keep one of them", local, general));
  }
  return general.empty() ? local : general;
}

// The stages as they are, or the layers they are cut from.
void read_model(const Cursor& root, Config& config) {
  const auto stages = root.find("stages");
  const auto layers = root.find("layers");
  const auto layout = root.find("layout");
  if (stages && layers) {
    for (const std::string_view key : {"recompute", "offload"}) {
      if (const auto keeping = stages->find(key)) refuse_with_layers(*keeping);
    }
    layers->fail("given beside stages, which they stand in for; keep one of the two");
  }
  if (layout && !layers) layout->fail("given without layers, which it cuts; add them");
  if (stages) read_stages(*stages, config);
  if (layers) read_layers(*layers, config);
  if (layout) read_layout(*layout, config);
}

Config read_tree(const yaml::NodePtr& tree, const std::string& file) {
  const Cursor plain(tree, "");
  if (tree->kind == yaml::Node::Kind::null) {
    plain.fail("the config is empty; it needs the keys pipeline and stages");
  }
  plain.allow_keys({"pipeline", "stages", "layers", "layout", "links", "execution", "memory",
                    "units", "topology", "jitter", "optimizer"});
  const auto stages =
      plain.find("layers")
          ? plain.find("stages")
          : plain.at("stages", "{forward: 1ms, backward_input: 1ms, backward_weight: 1ms}");
  const Cursor root = plain.with_time_unit(bare_time_unit(plain, stages));
  Config config;
  config.file = file;
  read_pipeline(root.at("pipeline", "{ranks: 8, microbatches: 24, schedule: 1f1b}"), config);
  read_model(root, config);
  // Before what names ranks: it says how many there are.
  if (const auto optimizer = root.find("optimizer")) read_optimizer(*optimizer, config);
  if (const auto links = root.find("links")) read_links(*links, config);
  if (const auto topology = root.find("topology")) read_topology(*topology, config);
  if (const auto jitter = root.find("jitter")) read_jitter(*jitter, config);
  if (const auto execution = root.find("execution")) config.execution = read_execution(*execution);
  if (const auto memory = root.find("memory")) read_memory(*memory, config);
  return config;
}

}  // namespace

Config read_config(const std::string& path, const Overrides& overrides) {
  return parse_config(yaml::read_text(path), path, overrides);
}

Config parse_config(std::string_view yaml, const std::string& file, const Overrides& overrides) {
  yaml::NodePtr tree = yaml::parse(yaml, file);
  for (const std::string& assignment : overrides) tree = yaml::with_override(tree, assignment);
  return read_tree(tree, file);
}

}  // namespace counterflow

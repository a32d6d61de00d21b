#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/problem/config_sections.h"
#include "scheduler/problem/layout.h"
#include "scheduler/problem/text.h"

namespace counterflow {
namespace {

struct Kind {
  std::string_view name;
  char letter;
  LayerRole role;
};

constexpr std::array<Kind, 7> kKinds{{
    {"embedding", 'E', LayerRole::embedding},
    {"decoder", 't', LayerRole::decoder},
    {"dense", 't', LayerRole::decoder},
    {"moe", 't', LayerRole::decoder},
    {"mtp", 'm', LayerRole::mtp},
    {"head", 'L', LayerRole::head},
    {"loss", 'L', LayerRole::head},
}};

char read_letter(const Cursor& at) {
  const std::string text = at.text("a letter, such as t");
  const char c = text.front();
  if (text.size() != 1 || !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
    at.fail(fmt::format("{} is not one letter, a to z or A to Z", shown(text)));
  }
  return c;
}

// What a layer is, from its kind, its letter or both.
void read_kind(const Cursor& at, Layer& layer) {
  const auto kind = at.find("kind");
  const auto letter = at.find("letter");
  if (!kind && !letter) at.fail("neither kind nor letter; write for example kind: decoder");
  if (letter) layer.letter = read_letter(*letter);
  if (kind) layer.kind = kind->text("the kind of a layer, such as decoder");
  const auto fits = [&](const Kind& known) {
    return kind ? known.name == layer.kind : known.letter == layer.letter;
  };
  const auto* const known = std::find_if(kKinds.begin(), kKinds.end(), fits);
  if (known == kKinds.end()) {
    layer.role = LayerRole::other;
    if (!letter) {
      at.fail(fmt::format("the kind {} has no letter of its own; add for example letter: x",
                          shown(layer.kind)));
    }
    if (!kind) layer.kind = std::string(1, layer.letter);
    return;
  }
  layer.role = known->role;
  layer.kind = known->name;
  if (!letter) layer.letter = known->letter;
}

void read_memory(const Cursor& at, Layer& layer) {
  if (const auto c = at.find("activation")) layer.activation = c->size();
  layer.kept_for_weight = layer.activation;
  if (const auto c = at.find("weight_activation")) {
    layer.kept_for_weight = c->size();
    if (layer.kept_for_weight > layer.activation) {
      c->fail(fmt::format("{}B is more than the activation of {}B, of which it is a part; lower it",
                          layer.kept_for_weight.value, layer.activation.value));
    }
  }
  if (const auto c = at.find("static")) layer.fixed = c->size();
  if (const auto c = at.find("message")) layer.message = c->size();
}

// One entry of the list: a layer, and how many of it stand there.
std::pair<Layer, std::size_t> read_layer(const Cursor& at) {
  for (const std::string_view key : {"recompute", "offload"}) {
    if (const auto keeping = at.find(key)) refuse_with_layers(*keeping);
  }
  at.allow_keys({"kind", "letter", "repeat", "forward", "backward_input", "backward_weight",
                 "activation", "weight_activation", "static", "message", "frozen"});
  Layer layer;
  read_kind(at, layer);
  layer.cost.forward = at.at("forward", "1ms").duration();
  if (const auto c = at.find("backward_input")) layer.cost.backward_input = c->duration();
  if (const auto c = at.find("backward_weight")) layer.cost.backward_weight = c->duration();
  read_memory(at, layer);
  if (const auto c = at.find("frozen")) layer.frozen = c->boolean();
  std::size_t count = 1;
  if (const auto c = at.find("repeat")) {
    count = static_cast<std::size_t>(c->integer(1, static_cast<std::int64_t>(kMaxLayers)));
  }
  return {std::move(layer), count};
}

// Is the key in every entry? One that some have and others lack is forgotten rather than meant.
bool given_by_all(const std::vector<Cursor>& entries, std::string_view key) {
  const auto has = [&](const Cursor& entry) { return entry.find(key).has_value(); };
  const auto with = std::find_if(entries.begin(), entries.end(), has);
  const auto without = std::find_if_not(entries.begin(), entries.end(), has);
  if (with != entries.end() && without != entries.end()) {
    without->fail(fmt::format("{} is missing, which {} gives; write 0 where there is none", key,
                              with->path()));
  }
  return with != entries.end();
}

bool given_by_any(const std::vector<Cursor>& entries, std::string_view key) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Cursor& entry) { return entry.find(key).has_value(); });
}

// Where a layer says what it sends, all must, but for the last, which sends nothing.
void check_messages(const std::vector<Cursor>& entries) {
  const auto last = entries.end() - 1;
  const auto without = std::find_if_not(
      entries.begin(), last, [](const Cursor& entry) { return entry.find("message").has_value(); });
  if (without != last) {
    without->fail("message is missing, which another layer gives; give it, or links.message alone");
  }
}

// One letter stands for one role, or counts by letter would mean nothing.
void check_letters(const std::vector<Cursor>& entries, const std::vector<Layer>& firsts) {
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (firsts[k].letter != firsts[i].letter || firsts[k].role == firsts[i].role) continue;
      entries[i].fail(
          fmt::format("the letter {} already stands for {}, not {}; give one of them "
                      "another letter",
                      firsts[i].letter, shown(firsts[k].kind), shown(firsts[i].kind)));
    }
  }
}

// Sums over any of the layers stay in range.
void check_totals(const Cursor& at, const std::vector<Layer>& layers) {
  double time = 0;
  double bytes = 0;
  for (const Layer& layer : layers) {
    const StageCost& cost = layer.cost;
    for (const Time each : {cost.forward, cost.backward_input, cost.backward_weight}) {
      time += static_cast<double>(each.count());
    }
    for (const Bytes each : {layer.activation, layer.fixed, layer.message.value_or(Bytes{})}) {
      bytes += static_cast<double>(each.value);
    }
  }
  constexpr auto kLimit = static_cast<double>(kMaxTotal);
  if (time >= kLimit)
    at.fail("the durations of all layers sum to 2^62 ns (146 years) or more; check their units");
  if (bytes >= kLimit)
    at.fail("the sizes of all layers sum to 2^62 bytes (4 EiB) or more; check their units");
}

int read_size(const Cursor& at) {
  return at.small_integer(0, static_cast<std::int64_t>(kMaxLayers));
}

Cut read_cut(const Cursor& at, const std::vector<Layer>& layers) {
  std::string text;
  std::vector<int> counts;
  if (at.is_list()) {
    counts = at.list_of("layers, one number a stage", read_size);
    if (counts.empty() || counts.size() > static_cast<std::size_t>(kMaxStages)) {
      at.fail(fmt::format("a list of {} stages; 1 to {} are possible", counts.size(), kMaxStages));
    }
  } else {
    text = at.text("a layout such as Et*3|(tt|)*29,m|L, or a list of the layers in each stage");
  }
  try {
    return at.is_list() ? cut_from_counts(layers, counts)
                        : cut_from_letters(layers, parse_layout(text));
  } catch (const InputError& refusal) {
    at.fail(refusal.what());
  }
}

}  // namespace

void read_layers(const Cursor& at, Config& config) {
  const auto entries = at.list_of("layers, such as {kind: decoder, repeat: 61, forward: 1ms}",
                                  [](const Cursor& entry) { return entry; });
  if (entries.empty()) at.fail("no layers; write for example [{kind: decoder, forward: 1ms}]");
  Layers layers;
  layers.where = config.stages_where = at.where();
  std::vector<Layer> firsts;
  for (const Cursor& entry : entries) {
    const auto [layer, count] = read_layer(entry);
    if (count > kMaxLayers - layers.list.size()) {
      entry.fail(fmt::format("more than {} layers; lower repeat", kMaxLayers));
    }
    layers.list.insert(layers.list.end(), count, layer);
    firsts.push_back(layer);
  }
  check_letters(entries, firsts);
  check_totals(at, layers.list);
  layers.has_backward_input = given_by_all(entries, "backward_input");
  layers.has_backward_weight = given_by_all(entries, "backward_weight");
  layers.has_activation = given_by_any(entries, "activation");
  layers.has_message = given_by_any(entries, "message");
  if (layers.has_message) check_messages(entries);
  config.layers = std::move(layers);
}

void read_layout(const Cursor& at, Config& config) {
  config.layout = at.located([&](const Cursor& c) { return read_cut(c, config.layers->list); });
  const auto stages = static_cast<std::int64_t>(config.layout->value.size());
  const int ranks = config.ranks.value;
  if (config.placement && config.placement->value.kind == PlacementKind::list) {
    const std::size_t placed = config.placement->value.list.size();
    if (placed == config.layout->value.size()) return;
    at.fail(fmt::format("{} stages, pipeline.placement has {}; make them equal", stages, placed));
  }
  if (stages % ranks != 0) {
    at.fail(fmt::format("{} stages do not divide by {} ranks; the layout needs {} or {}", stages,
                        ranks, std::max<std::int64_t>(1, stages / ranks) * ranks,
                        (stages / ranks + 1) * ranks));
  }
  if (config.chunks && std::int64_t{config.chunks->value} * ranks != stages) {
    at.fail(
        fmt::format("{} stages, but {} ranks with {} stages a rank have {}; change "
                    "pipeline.chunks to {}",
                    stages, ranks, config.chunks->value, std::int64_t{config.chunks->value} * ranks,
                    stages / ranks));
  }
  if (!config.chunks) config.chunks = {static_cast<int>(stages / ranks), at.where()};
}

}  // namespace counterflow

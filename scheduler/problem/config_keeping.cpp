#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/problem/config_sections.h"

namespace counterflow {
namespace {

void read_always(const Cursor& at, KeepingConfig& config) {
  constexpr std::string_view kWhat = "stage numbers such as [0, 1], or the word all";
  if (!at.is_list() && !at.is_map() && at.text(kWhat) == "all") {
    config.always_all = true;
    return;
  }
  std::set<int> seen;
  config.always = at.located([&](const Cursor& list) {
    return list.list_of(kWhat, [&](const Cursor& c) {
      const int stage = c.small_integer(0, kMaxStages - 1);
      if (!seen.insert(stage).second) c.fail(fmt::format("{} is given twice; remove one", stage));
      return stage;
    });
  });
}

KeepingConfig read_one(const Cursor& at, const Config& config, bool copies) {
  if (copies) {
    at.allow_keys({"time", "bandwidth", "activation", "always"});
  } else {
    at.allow_keys({"time", "activation", "always"});
  }
  if (!config.activation) {
    at.fail("given without stages.activation, of which it keeps a part; give both");
  }
  KeepingConfig result;
  result.where = at.where();
  result.activation =
      at.at("activation", "2MiB").per_item([](const Cursor& c) { return c.size(); });
  if (const auto c = at.find("time")) {
    result.time = c->per_item([](const Cursor& each) { return each.duration(); });
  }
  if (copies) {
    const auto bandwidth = at.find("bandwidth");
    if (bandwidth.has_value() == result.time.has_value()) {
      at.fail(
          "takes either the time of a copy that compute does not hide, or the bandwidth of the "
          "link to the host; give one of time and bandwidth");
    }
    if (bandwidth) result.bandwidth = bandwidth->rate();
  }
  if (const auto c = at.find("always")) read_always(*c, result);
  return result;
}

}  // namespace

void refuse_with_layers(const Cursor& keeping) {
  keeping.fail(
      "not possible with layers: whole stages recompute or offload; give stages in the place of "
      "layers");
}

void read_keeping(const Cursor& at, Config& config) {
  if (const auto c = at.find("recompute")) config.recompute = read_one(*c, config, false);
  if (const auto c = at.find("offload")) config.offload = read_one(*c, config, true);
}

}  // namespace counterflow

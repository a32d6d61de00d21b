#include "scheduler/problem/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/problem/config.h"
#include "scheduler/problem/config_sections.h"
#include "scheduler/problem/cursor.h"
#include "scheduler/problem/guess.h"
#include "scheduler/problem/text.h"
#include "scheduler/problem/yaml_tree.h"

namespace counterflow {
namespace {

// What to write in the place of a link that there is not.
std::string other_link(std::string_view wrong, std::vector<std::string_view> names) {
  constexpr std::size_t kMostListed = 12;
  if (names.empty()) return "the topology limits no rate; name ranks with link: [0, 1]";
  const std::vector<std::string_view> likely = guesses(wrong, names);
  if (!likely.empty()) return fmt::format("did you mean {}?", fmt::join(likely, " or "));
  const std::size_t left = names.size() - std::min(names.size(), kMostListed);
  names.resize(names.size() - left);
  return fmt::format("there are {}{}", fmt::join(names, ", "),
                     left > 0 ? fmt::format(" and {} more", left) : "");
}

class ScenarioReader {
 public:
  explicit ScenarioReader(const Config& config) : config_(config) {}

  Scenario read(const Cursor& root) {
    Scenario scenario;
    if (const auto slow = root.find("slow")) {
      scenario.slowdowns = slow->list_of("entries {rank, factor, from, until}",
                                         [&](const Cursor& c) { return read_slow(c); });
    }
    if (const auto outages = root.find("outages")) {
      for (auto& each : outages->list_of("entries {link, from, until}",
                                         [&](const Cursor& c) { return read_outage(c); })) {
        scenario.slowdowns.push_back(each);
      }
    }
    if (const auto failures = root.find("failures")) {
      scenario.failures =
          failures->list_of("entries {rank, at}", [&](const Cursor& c) { return read_failure(c); });
    }
    return scenario;
  }

 private:
  Rank read_rank(const Cursor& at) { return at.small_integer(0, config_.all_ranks() - 1); }

  Scenario::OneShared read_shared(const Cursor& at) {
    const std::string name = at.text("the name of a shared link");
    const Topology* topology = config_.links.topology();
    if (topology == nullptr) {
      at.fail(
          fmt::format("{} is a shared link, and the config has no topology; name ranks with "
                      "link: [0, 1]",
                      shown(name)));
    }
    if (const auto link = topology->find(name)) return {*link};
    std::vector<std::string_view> names;
    for (const SharedLink& link : topology->links()) names.push_back(link.name);
    at.fail(fmt::format("there is no shared link {}; {}", shown(name), other_link(name, names)));
  }

  // Which of the keys in `known` says what is slow, read.
  Scenario::Place read_what(const Cursor& at, const std::vector<std::string_view>& known) {
    std::vector<std::string_view> given;
    for (const std::string_view key : known) {
      if (at.find(key)) given.push_back(key);
    }
    if (given.size() != 1) {
      at.fail(fmt::format("names {} places; give exactly one of {}", given.size(),
                          fmt::join(known, ", ")));
    }
    const Cursor place = *at.find(given.front());
    if (given.front() == "rank") return Scenario::OneRank{read_rank(place)};
    if (given.front() == "shared") return read_shared(place);
    const auto [from, to] = read_rank_pair(place, config_.all_ranks());
    return Scenario::OneLink{from, to};
  }

  void read_window(const Cursor& at, Scenario::Slowdown& slowdown) {
    if (const auto c = at.find("from")) slowdown.from = c->duration();
    const auto until = at.find("until");
    if (!until) return;
    slowdown.until = until->duration();
    if (*slowdown.until <= slowdown.from) {
      until->fail(fmt::format("{} ns is not after from, {} ns; make it later",
                              slowdown.until->count(), slowdown.from.count()));
    }
  }

  Scenario::Slowdown read_slow(const Cursor& at) {
    at.allow_keys({"rank", "link", "shared", "factor", "from", "until"});
    Scenario::Slowdown slowdown;
    slowdown.what = read_what(at, {"rank", "link", "shared"});
    slowdown.factor =
        at.at("factor", "2")
            .factor({1, 1000, "what is slow takes from 1 to 1000 times as long", "2"});
    read_window(at, slowdown);
    return slowdown;
  }

  Scenario::Slowdown read_outage(const Cursor& at) {
    at.allow_keys({"link", "shared", "from", "until"});
    Scenario::Slowdown outage;
    outage.what = read_what(at, {"link", "shared"});
    read_window(at, outage);
    return outage;
  }

  Scenario::Failure read_failure(const Cursor& at) {
    at.allow_keys({"rank", "at"});
    const Cursor rank = at.at("rank", "0");
    const Scenario::Failure failure{read_rank(rank), at.at("at", "10ms").duration()};
    if (!failed_.insert(failure.rank).second) {
      rank.fail(fmt::format("rank {} fails twice; remove one", failure.rank));
    }
    return failure;
  }

  const Config& config_;
  std::set<Rank> failed_;
};

}  // namespace

Scenario read_scenario(const std::string& path, const Config& config) {
  return parse_scenario(yaml::read_text(path, "scenario"), path, config);
}

Scenario parse_scenario(std::string_view yaml, const std::string& file, const Config& config) {
  const yaml::NodePtr tree = yaml::parse(yaml, file);
  const Cursor plain(tree, "");
  if (tree->kind == yaml::Node::Kind::null) {
    plain.fail("the scenario is empty; give slow, outages or failures");
  }
  plain.allow_keys({"units", "slow", "outages", "failures"});
  const auto units = plain.find("units");
  if (units) units->allow_keys({"time"});
  const auto unit = units ? units->find("time") : std::nullopt;
  const Cursor root =
      plain.with_time_unit(unit ? unit->choice({"ns", "us", "ms", "s"}) : std::string_view());
  return ScenarioReader(config).read(root);
}

}  // namespace counterflow

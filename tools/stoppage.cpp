#include "tools/stoppage.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/ir/schedule_file.h"
#include "tools/command.h"
#include "tools/console.h"

namespace counterflow {
namespace {

using nlohmann::ordered_json;

// More would not fit a screen.
constexpr std::size_t kMostShown = 20;

ordered_json to_json(const Stoppage::Blocked& blocked) {
  ordered_json object;
  object["rank"] = blocked.rank;
  object["index"] = blocked.index;
  object["op"] = blocked.what;
  object["since_ns"] = blocked.since.count();
  object["reason"] = blocked.reason;
  return object;
}

ordered_json to_json(const Stoppage& stoppage) {
  ordered_json object;
  object["completed"] = false;
  object["stopped_at_ns"] = stoppage.last_progress.count();
  object["first_blocked"] = to_json(stoppage.blocked.front());
  object["per_rank"] = ordered_json::array();
  for (const Stoppage::OfRank& rank : stoppage.ranks) {
    object["per_rank"].push_back(
        {{"finished", rank.finished}, {"instructions", rank.instructions}, {"blocked", nullptr}});
  }
  for (const Stoppage::Blocked& blocked : stoppage.blocked) {
    object["per_rank"][static_cast<std::size_t>(blocked.rank)]["blocked"] = to_json(blocked);
  }
  return object;
}

std::string to_line(const Stoppage& stoppage, const Stoppage::Blocked& blocked) {
  const Stoppage::OfRank& rank = stoppage.ranks[static_cast<std::size_t>(blocked.rank)];
  return fmt::format("rank {}: {} of {} instructions ended; {} (position {}) {}\n", blocked.rank,
                     rank.finished, rank.instructions, blocked.what, blocked.index, blocked.reason);
}

std::string to_text(const Stoppage& stoppage) {
  const Stoppage::Blocked& first = stoppage.blocked.front();
  std::string text = fmt::format(
      "the run stops at {} ns; the first that could not proceed is {} of rank {} (position {})\n",
      stoppage.last_progress.count(), first.what, first.rank, first.index);
  for (std::size_t i = 0; i < stoppage.blocked.size() && i < kMostShown; ++i) {
    text += to_line(stoppage, stoppage.blocked[i]);
  }
  if (stoppage.blocked.size() > kMostShown) {
    text += fmt::format("... and {} more ranks\n", stoppage.blocked.size() - kMostShown);
  }
  return text;
}

}  // namespace

int report_stoppage(const Stoppage& stoppage, const Options& options) {
  if (options.json) print(to_json(stoppage).dump(1) + "\n");
  message(Severity::error, to_text(stoppage));
  return kAnswerIsNo;
}

}  // namespace counterflow

#include "executor/processes/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace counterflow::exec {
namespace {

// "2 is", "0, 1 and 3 are", "0, 1, 2, 3 and 60 more are".
std::string list(std::span<const Rank> ranks) {
  constexpr std::size_t kMost = 5;
  if (ranks.size() == 1) return fmt::format("{} is", ranks.front());
  if (ranks.size() <= kMost) {
    return fmt::format("{} and {} are", fmt::join(ranks.first(ranks.size() - 1), ", "),
                       ranks.back());
  }
  return fmt::format("{} and {} more are", fmt::join(ranks.first(kMost - 1), ", "),
                     ranks.size() - (kMost - 1));
}

}  // namespace

std::optional<Disagreement> disagreement(std::span<const Intent> intents) {
  struct Camp {
    const Intent* intent;
    std::vector<Rank> ranks{};
  };
  std::vector<Camp> camps;  // by their first ranks
  for (std::size_t rank = 0; rank < intents.size(); ++rank) {
    auto camp = std::ranges::find_if(
        camps, [&](const Camp& each) { return *each.intent == intents[rank]; });
    if (camp == camps.end()) camp = camps.insert(camps.end(), Camp{&intents[rank]});
    camp->ranks.push_back(static_cast<Rank>(rank));
  }
  if (camps.size() < 2) return std::nullopt;

  const auto most = std::ranges::max_element(
      camps, {}, [](const Camp& each) { return each.ranks.size(); });  // the first of them
  const auto other = most == camps.begin() ? camps.begin() + 1 : camps.begin();
  Disagreement result{.culprit = other->ranks.front(), .reason = {}};
  for (const Camp& camp : camps) {
    const bool several = camp.ranks.size() > 1;
    result.reason += fmt::format("{}rank{} {} about to run program {:016x}, {}",
                                 result.reason.empty() ? "" : "; ", several ? "s" : "",
                                 list(camp.ranks), camp.intent->program, camp.intent->rules);
  }
  result.reason += ": give all ranks the same input";
  return result;
}

}  // namespace counterflow::exec

#include "executor/gloo/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace counterflow::exec {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string key_of(Rank rank) {
  return fmt::format("here-{}", rank);
}

// Has a rank come, or does it within `most`? A store says no by throwing something of its own.
bool has_come(gloo::rendezvous::Store& store, Rank rank, std::chrono::milliseconds most) {
  try {
    store.wait({key_of(rank)}, most);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void meet(gloo::rendezvous::Store& store, Rank rank, int size, std::chrono::milliseconds patience,
          const std::string& advice) {
  constexpr auto kLook = 1ms;  // zero would be for ever
  if (has_come(store, rank, kLook)) {
    throw EnvironmentError(fmt::format(
        "rank {} has come already, in an earlier run or as another process; {}", rank, advice));
  }
  store.set(key_of(rank), {'1'});
  const auto until = Clock::now() + patience;
  std::vector<Rank> missing;
  for (Rank other = 0; other < size; ++other) {
    if (other == rank) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (!has_come(store, other, std::max<std::chrono::milliseconds>(left, kLook))) {
      missing.push_back(other);
    }
  }
  if (missing.empty()) return;
  const std::string text = fmt::format(
      "rank {} has waited {} ms for the {} others, and rank{} {} did not come; {}", rank,
      patience.count(), size - 1, missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), advice);
  throw MissingRanks(text, std::move(missing));
}

}  // namespace counterflow::exec

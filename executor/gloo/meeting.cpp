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

std::string key_of(const std::string& place, Rank rank) {
  return fmt::format("{}-{}", place, rank);
}

// Is a key there, or is it within `most`? A store says no by throwing something of its own.
bool has(gloo::rendezvous::Store& store, const std::string& key, std::chrono::milliseconds most) {
  try {
    store.wait({key}, most);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void meet(gloo::rendezvous::Store& store, const std::string& place, Rank rank, int size,
          std::chrono::milliseconds patience, const std::string& advice) {
  constexpr auto kLook = 1ms;  // zero would be for ever
  if (has(store, key_of(place, rank), kLook)) {
    throw EnvironmentError(fmt::format(
        "rank {} has come already, in an earlier run or as another process; {}", rank, advice));
  }
  store.set(key_of(place, rank), {'1'});
  const auto until = Clock::now() + patience;
  std::vector<Rank> missing;
  for (Rank other = 0; other < size; ++other) {
    if (other == rank) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (!has(store, key_of(place, other), std::max<std::chrono::milliseconds>(left, kLook))) {
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

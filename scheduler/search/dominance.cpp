#include "scheduler/search/dominance.h"

#include <algorithm>

namespace counterflow {
namespace {

bool as_early(const Dominance::Times& a, const Dominance::Times& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](std::int64_t one, std::int64_t other) { return one <= other; });
}

}  // namespace

std::size_t Dominance::Hash::operator()(const Key& key) const {
  std::size_t hash = 1469598103934665603ULL;
  for (const std::int32_t value : key) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 1099511628211ULL;
  }
  return hash;
}

bool Dominance::covers(const Key& key, const Times& times) const {
  const auto known = states_.find(key);
  if (known == states_.end()) return false;
  return std::any_of(known->second.begin(), known->second.end(),
                     [&](const Times& other) { return as_early(other, times); });
}

void Dominance::add(const Key& key, Times times) {
  std::vector<Times>& known = states_[key];
  known.erase(std::remove_if(known.begin(), known.end(),
                             [&](const Times& other) { return as_early(times, other); }),
              known.end());
  known.push_back(std::move(times));
}

}  // namespace counterflow

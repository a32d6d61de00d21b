#include "scheduler/problem/links.h"

#include <algorithm>
#include <cmath>

namespace counterflow {
namespace {

Time nanoseconds(Bytes size, double bandwidth) {
  constexpr double kLongest = 0x1p62;
  return Time{std::llround(std::min(static_cast<double>(size.value) / bandwidth * 1e9, kLongest))};
}

}  // namespace

Links Links::in_copies(int copies) const {
  Links links = *this;
  if (table_.empty()) return links;
  const Time longest = *std::max_element(table_.begin(), table_.end());
  const int ranks = ranks_ * copies;
  links.ranks_ = ranks;
  links.table_.clear();
  links.table_.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks));
  for (Rank from = 0; from < ranks; ++from) {
    for (Rank to = 0; to < ranks; ++to) {
      const Rank a = from % ranks_;
      const Rank b = to % ranks_;
      links.table_.push_back(
          a == b && from != to ? longest : table_[static_cast<std::size_t>(a * ranks_ + b)]);
    }
  }
  return links;
}

Links Links::with(Topology topology) const {
  Links links = *this;
  links.topology_ = std::make_shared<const Topology>(std::move(topology));
  return links;
}

Time Links::longest_latency() const {
  const Time own = table_.empty() ? latency_ : *std::max_element(table_.begin(), table_.end());
  return topology_ ? own + topology_->longest_latency() : own;
}

Time Links::occupancy(Bytes size) const {
  return has_bandwidth() ? nanoseconds(size, bandwidth_) : Time{0};
}

Time Links::passage(Rank from, Rank to, Bytes size) const {
  if (!topology_) return Time{0};
  const auto bandwidth = topology_->bandwidth(from, to);
  return bandwidth ? nanoseconds(size, *bandwidth) : Time{0};
}

Time Links::longest_hop(Bytes size) const {
  Time sharing{0};
  if (topology_ && topology_->least_bandwidth()) {
    sharing = nanoseconds(size, *topology_->least_bandwidth());
  }
  return longest_latency() + std::max(occupancy(size), sharing);
}

}  // namespace counterflow

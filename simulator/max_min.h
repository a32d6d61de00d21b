#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace counterflow::sim {

// Max-min fair rates: no flow's rate can be raised without lowering that of one that is no faster.
// By progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., 6.5.2): of all links the
// one with the least capacity left for each of its flows sets their rates, and is taken out.
class MaxMinSolver {
 public:
  // A flow over no link at all.
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  // The rate of each flow; flow f crosses crossed[first[f]] to crossed[first[f + 1] - 1], each link
  // once. A capacity may be 0 or infinite. The span lasts until the next call. Deterministic; exact
  // but for one rounding a link. O(links^2 + links crossed).
  [[nodiscard]] std::span<const double> solve(std::span<const double> capacities,
                                              std::span<const std::uint32_t> first,
                                              std::span<const std::uint32_t> crossed);

 private:
  struct Link {
    double left = 0;          // capacity not given away yet
    std::uint32_t flows = 0;  // without a rate yet
    std::uint32_t first = 0;  // into flows_
    std::uint32_t end = 0;
    [[nodiscard]] double share() const { return left / static_cast<double>(flows); }
  };
  void list_flows(std::span<const std::uint32_t> first, std::span<const std::uint32_t> crossed);
  void set_rate(std::size_t flow, double rate, std::span<const std::uint32_t> first,
                std::span<const std::uint32_t> crossed);

  std::vector<Link> links_;
  std::vector<std::uint32_t> flows_;  // of each link
  std::vector<std::uint32_t> open_;   // links with flows that have no rate yet
  std::vector<double> rates_;
};

// The same for a list of flows, each a list of the links it crosses.
[[nodiscard]] std::vector<double> max_min_rates(
    const std::vector<double>& capacities, const std::vector<std::vector<std::uint32_t>>& flows);

}  // namespace counterflow::sim

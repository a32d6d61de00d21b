#include "simulator/max_min.h"

#include <algorithm>

namespace counterflow::sim {

void MaxMinSolver::list_flows(std::span<const std::uint32_t> first,
                              std::span<const std::uint32_t> crossed) {
  for (const std::uint32_t link : crossed) ++links_[link].flows;
  std::uint32_t sum = 0;
  open_.clear();
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    Link& link = links_[id];
    link.first = link.end = sum;
    sum += link.flows;
    if (link.flows > 0) open_.push_back(id);
  }
  flows_.resize(sum);
  for (std::uint32_t flow = 0; flow + 1 < first.size(); ++flow) {
    for (std::uint32_t k = first[flow]; k < first[flow + 1]; ++k) {
      flows_[links_[crossed[k]].end++] = flow;
    }
  }
}

void MaxMinSolver::set_rate(std::size_t flow, double rate, std::span<const std::uint32_t> first,
                            std::span<const std::uint32_t> crossed) {
  rates_[flow] = rate;
  for (std::uint32_t k = first[flow]; k < first[flow + 1]; ++k) {
    Link& link = links_[crossed[k]];
    link.left = std::max(0.0, link.left - rate);
    --link.flows;
  }
}

std::span<const double> MaxMinSolver::solve(std::span<const double> capacities,
                                            std::span<const std::uint32_t> first,
                                            std::span<const std::uint32_t> crossed) {
  links_.assign(capacities.size(), {});
  for (std::size_t id = 0; id < capacities.size(); ++id) links_[id].left = capacities[id];
  list_flows(first, crossed);
  rates_.assign(first.size() - 1, kUnlimited);
  while (!open_.empty()) {
    const std::uint32_t tightest =
        *std::ranges::min_element(open_, {}, [&](std::uint32_t id) { return links_[id].share(); });
    const double rate = links_[tightest].share();
    if (rate == kUnlimited) break;  // and so is all that is left
    for (std::uint32_t k = links_[tightest].first; k < links_[tightest].end; ++k) {
      if (rates_[flows_[k]] == kUnlimited) set_rate(flows_[k], rate, first, crossed);
    }
    std::erase_if(open_, [&](std::uint32_t id) { return links_[id].flows == 0; });
  }
  return rates_;
}

std::vector<double> max_min_rates(const std::vector<double>& capacities,
                                  const std::vector<std::vector<std::uint32_t>>& flows) {
  std::vector<std::uint32_t> first{0};
  std::vector<std::uint32_t> crossed;
  for (const auto& flow : flows) {
    crossed.insert(crossed.end(), flow.begin(), flow.end());
    first.push_back(static_cast<std::uint32_t>(crossed.size()));
  }
  MaxMinSolver solver;
  const auto rates = solver.solve(capacities, first, crossed);
  return {rates.begin(), rates.end()};
}

}  // namespace counterflow::sim

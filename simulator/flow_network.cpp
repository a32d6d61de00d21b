#include "simulator/flow_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace counterflow::sim {

FlowNetwork::FlowNetwork(std::vector<double> capacities) : capacities_(std::move(capacities)) {
  reset();
}

void FlowNetwork::reset() {
  links_.resize(capacities_.size());
  for (std::size_t id = 0; id < links_.size(); ++id) {
    links_[id].capacity = capacities_[id];
    links_[id].flows.clear();
    links_[id].changed = false;
  }
  unused_.clear();
  for (FlowId id = static_cast<FlowId>(flows_.size()); id-- > 0;) {
    flows_[id].active = false;
    unused_.push_back(id);
  }
  ends_ = {};
  changed_.clear();
  now_ = 0;
  begun_ = 0;
}

void FlowNetwork::touch(std::int64_t at, LinkId link) {
  if (at > now_) settle();  // what has changed so far holds from then on
  now_ = std::max(now_, at);
  if (std::exchange(links_[link].changed, true)) return;
  changed_.push_back(link);
}

FlowNetwork::FlowId FlowNetwork::begin(std::int64_t at, std::span<const LinkId> route, double bytes,
                                       std::uint32_t tag) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<FlowId>(flows_.size()));
    flows_.emplace_back();
  }
  const FlowId id = unused_.back();
  unused_.pop_back();
  for (const LinkId link : route) {
    touch(at, link);
    links_[link].flows.push_back(id);
  }
  Flow& flow = flows_[id];
  flow.route.assign(route.begin(), route.end());
  flow.left = bytes;
  flow.rate = 0;
  flow.since = at;
  flow.number = begun_++;
  flow.tag = tag;
  flow.active = true;
  return id;
}

void FlowNetwork::cancel(std::int64_t at, FlowId id) {
  Flow& flow = flows_[id];
  for (const LinkId link : flow.route) {
    touch(at, link);
    std::erase(links_[link].flows, id);
  }
  flow.active = false;
  ++flow.revision;
  unused_.push_back(id);
}

void FlowNetwork::set_capacity(std::int64_t at, LinkId link, double capacity) {
  touch(at, link);
  links_[link].capacity = capacity;
}

std::int64_t FlowNetwork::next_end() {
  settle();
  while (!ends_.empty() && ends_.top().revision != flows_[ends_.top().flow].revision) ends_.pop();
  return ends_.empty() ? kNever : ends_.top().at;
}

std::span<const std::uint32_t> FlowNetwork::finish_next() {
  finished_.clear();
  const std::int64_t at = ends_.top().at;
  for (; !ends_.empty() && ends_.top().at == at; ends_.pop()) {
    const End end = ends_.top();
    if (end.revision != flows_[end.flow].revision) continue;
    finished_.push_back(flows_[end.flow].tag);
    cancel(at, end.flow);
  }
  return finished_;
}

std::int64_t FlowNetwork::end_of(const Flow& flow) const {
  constexpr double kFar = 0x1p62;
  if (flow.left <= 0 || flow.rate == MaxMinSolver::kUnlimited) return flow.since;
  if (flow.rate <= 0) return kNever;
  const double lasts = flow.left / flow.rate;
  return lasts < kFar ? flow.since + std::llround(lasts) : kNever;
}

void FlowNetwork::set_rate(FlowId id, double rate) {
  Flow& flow = flows_[id];
  if (flow.since < now_) {
    if (rate == flow.rate) return;  // its end stands
    flow.left -= flow.rate * static_cast<double>(now_ - flow.since);
  }
  flow.rate = rate;
  flow.since = now_;
  ++flow.revision;
  const std::int64_t end = end_of(flow);
  if (end != kNever) ends_.push({end, flow.number, id, flow.revision});
}

void FlowNetwork::collect() {
  ++visit_;
  part_links_.clear();
  part_flows_.clear();
  const auto meet = [&](LinkId id) {
    Link& link = links_[id];
    if (std::exchange(link.visit, visit_) == visit_) return;
    link.local = static_cast<std::uint32_t>(part_links_.size());
    part_links_.push_back(id);
  };
  for (const LinkId id : changed_) {
    links_[id].changed = false;
    meet(id);
  }
  changed_.clear();
  for (std::size_t k = 0; k < part_links_.size(); ++k) {
    for (const FlowId id : links_[part_links_[k]].flows) {
      if (std::exchange(flows_[id].visit, visit_) == visit_) continue;
      part_flows_.push_back(id);
      for (const LinkId link : flows_[id].route) meet(link);
    }
  }
}

void FlowNetwork::settle() {
  if (changed_.empty()) return;
  collect();
  part_capacities_.clear();
  for (const LinkId id : part_links_) part_capacities_.push_back(links_[id].capacity);
  first_.assign(1, 0);
  crossed_.clear();
  for (const FlowId id : part_flows_) {
    for (const LinkId link : flows_[id].route) crossed_.push_back(links_[link].local);
    first_.push_back(static_cast<std::uint32_t>(crossed_.size()));
  }
  const auto rates = solver_.solve(part_capacities_, first_, crossed_);
  for (std::size_t k = 0; k < part_flows_.size(); ++k) set_rate(part_flows_[k], rates[k]);
}

}  // namespace counterflow::sim

#include "scheduler/search/list_scheduler.h"

#include <algorithm>

namespace counterflow {

ListScheduler::ListScheduler(const SearchModel& model)
    : model_(model),
      admission_(model),
      holder_of_(model.lanes.size(), SearchModel::kNoLane),
      heads_(model.lanes.size()),
      arrivals_(model.ops()),
      got_(model.ops()),
      partial_(model.ops()),
      begins_(model.ops()),
      link_free_(model.limited_links ? model.ranks() * model.ranks() : 0),
      clocks_(model.ranks()),
      events_(model.ranks()),
      orders_(model.ranks()) {
  // The first lane of a stage copy takes its memory, the last one frees the last of it; reversed it
  // is the other way round.
  for (LaneId first = 0; first < model.lanes.size();) {
    const LaneId last = model.last_of_copy(first);
    if (model.is_reversed) {
      holder_of_[first] = last;
    } else {
      holder_of_[last] = first;
    }
    first = last + 1;
  }
}

void ListScheduler::reset(const ListRule& rule) {
  rule_ = &rule;
  admission_.reset();
  std::fill(arrivals_.begin(), arrivals_.end(), kNever);
  std::fill(got_.begin(), got_.end(), 0);
  std::fill(partial_.begin(), partial_.end(), 0);
  std::fill(link_free_.begin(), link_free_.end(), 0);
  clocks_ = model_.rank_head;
  events_.clear();
  if (model_.has_pairs) std::fill(begins_.begin(), begins_.end(), -1);
  left_ = 0;
  for (LaneId id = 0; id < model_.lanes.size(); ++id) {
    const SearchModel::Lane& lane = model_.lanes[id];
    left_ += lane.count;
    if (lane.inputs == 0) {
      const auto first = arrivals_.begin() + static_cast<std::ptrdiff_t>(model_.id(id, 0));
      std::fill(first, first + lane.count, 0);
    }
    heads_[id] = {.duration = lane.duration,
                  .count = lane.count,
                  .cap = rule.caps.empty() ? lane.count : rule.caps[id]};
    look_at_next(id);
  }
  for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
    orders_[rank].clear();
    wake(static_cast<std::uint32_t>(rank), clocks_[rank]);
  }
  last_end_ = 0;
  hopeless_ = false;
}

void ListScheduler::look_at_next(LaneId lane) {
  Head& head = heads_[lane];
  if (model_.has_pairs) {
    while (head.number < head.count && begins_[model_.id(lane, head.number)] >= 0) {
      ++head.number;  // a fused W
    }
  }
  if (head.number == head.count) {
    head.arrival = kNever;
    return;
  }
  const OpId op = model_.id(lane, head.number);
  head.arrival = arrivals_[op];
  head.key = key(lane, head.number);
  if (!model_.durations.empty()) head.duration = model_.durations[op];
}

std::int64_t ListScheduler::run(const ListRule& rule, std::int64_t cutoff) {
  cutoff_ = cutoff;
  reset(rule);
  const std::size_t all = left_;
  while (!hopeless_) {
    const std::uint32_t rank = events_.first();
    const std::int64_t now = events_.time(rank);
    if (now == kNever) break;
    events_.set(rank, kNever);
    decide(rank, now);
  }
  work_ += static_cast<std::int64_t>(all - left_);
  return left_ == 0 && !hopeless_ ? last_end_ : -1;
}

// Which lanes have something is hard to foretell, so as little as possible branches on it.
void ListScheduler::collect(std::uint32_t rank) {
  std::size_t count = 0;
  candidates_.resize(model_.rank_begin[rank + 1] - model_.rank_begin[rank]);
  for (LaneId lane = model_.rank_begin[rank]; lane < model_.rank_begin[rank + 1]; ++lane) {
    const Head& head = heads_[lane];
    candidates_[count] = {lane, head.arrival, head.key, head.duration};
    bool is_open = (head.arrival != kNever) & (head.in_flight < head.cap);
    if (admission_.is_limited(lane) && is_open) is_open = admission_.admits(lane);
    count += static_cast<std::size_t>(is_open);
  }
  candidates_.resize(count);
}

// The candidate with the smallest key of those for which `fits` holds.
template <typename Fits>
const ListScheduler::Candidate* ListScheduler::first_by_key(Fits fits) const {
  const Candidate* first = nullptr;
  for (const Candidate& each : candidates_) {
    if (fits(each) && (first == nullptr || each.key < first->key)) first = &each;
  }
  return first;
}

const ListScheduler::Candidate* ListScheduler::choose(std::uint32_t rank, std::int64_t now) {
  const Candidate* best = first_by_key([now](const Candidate& c) { return c.arrival <= now; });
  if (best == nullptr) {
    std::int64_t soonest = kNever;
    for (const Candidate& each : candidates_) soonest = std::min(soonest, each.arrival);
    if (soonest != kNever) wake(rank, soonest);
    return nullptr;
  }
  if (rule_->patience == 0) return best;
  // Something better on its way, which the best one would delay?
  const std::int64_t until =
      std::min(now + best->duration - 1, now + best->duration * rule_->patience / 8);
  const Candidate* better = first_by_key([&](const Candidate& c) {
    return c.arrival > now && c.arrival <= until && c.key < best->key;
  });
  if (better == nullptr) return best;
  const Candidate* fill = first_by_key(
      [&](const Candidate& c) { return c.arrival <= now && now + c.duration <= better->arrival; });
  if (fill == nullptr) wake(rank, better->arrival);
  return fill;
}

// Begins the fused pair that gains most, if one is worth its wait.
bool ListScheduler::fuse(std::uint32_t rank, std::int64_t now) {
  const Candidate* forward = nullptr;
  const Candidate* gradient = nullptr;
  std::int64_t best_gain = -1;
  std::int64_t best_begin = 0;
  std::int64_t best_duration = 0;
  for (const Candidate& f : candidates_) {
    if (model_.lanes[f.lane].kind != OpKind::forward) continue;
    for (const Candidate& g : candidates_) {
      if (!makes_input_gradient(model_.lanes[g.lane].kind)) continue;
      // Each was admitted alone: where G takes memory too they may not fit together.
      if (model_.has_limits && model_.lanes[g.lane].allocated != SearchModel::Amount{}) continue;
      const OpId second = model_.id(g.lane, heads_[g.lane].number);
      const std::int64_t pair =
          model_.pair_duration(f.lane, model_.id(f.lane, heads_[f.lane].number), g.lane, second);
      if (pair < 0) continue;
      const LaneId w = model_.weight_of(g.lane);
      std::int64_t parts = f.duration + g.duration;
      if (w != SearchModel::kNoLane) {
        parts += model_.duration(w, model_.id(w, model_.number_of(second)));
      }
      const std::int64_t begin = std::max({now, f.arrival, g.arrival});
      const std::int64_t gain = parts - pair;
      if (begin - now > gain * rule_->pair_patience / 8) continue;
      if (gain - (begin - now) <= best_gain) continue;
      best_gain = gain - (begin - now);
      best_begin = begin;
      best_duration = pair;
      forward = &f;
      gradient = &g;
    }
  }
  if (forward == nullptr) return false;
  const std::int64_t end = best_begin + best_duration;
  const OpId f = model_.id(forward->lane, heads_[forward->lane].number);
  const OpId g = model_.id(gradient->lane, heads_[gradient->lane].number);
  orders_[rank].push_back(f | SearchModel::kFused);
  orders_[rank].push_back(g);
  take(forward->lane, f, best_begin);
  take(gradient->lane, g, best_begin);
  if (const LaneId w = model_.weight_of(gradient->lane); w != SearchModel::kNoLane) {
    const OpId weight = model_.id(w, model_.number_of(g));
    begins_[weight] = best_begin;
    look_at_next(w);
    admission_.begin(w, weight);
    --left_;
    if (const LaneId holder = holder_of_[w]; holder != SearchModel::kNoLane) {
      --heads_[holder].in_flight;
    }
  }
  send(forward->lane, f, end);
  send(gradient->lane, g, end);
  finish(rank, end);
  return true;
}

void ListScheduler::decide(std::uint32_t rank, std::int64_t now) {
  collect(rank);
  if (model_.has_pairs && !model_.is_reversed && fuse(rank, now)) return;
  if (const Candidate* candidate = choose(rank, now)) begin(*candidate, now);
}

void ListScheduler::begin(const Candidate& candidate, std::int64_t now) {
  const SearchModel::Lane& lane = model_.lanes[candidate.lane];
  const std::int64_t end = now + candidate.duration;
  if (end + lane.tail >= cutoff_) {
    hopeless_ = true;
    return;
  }
  const OpId op = model_.id(candidate.lane, heads_[candidate.lane].number);
  const auto rank = static_cast<std::uint32_t>(lane.rank);
  orders_[rank].push_back(op);
  take(candidate.lane, op, now);
  send(candidate.lane, op, end);
  finish(rank, end);
}

void ListScheduler::take(LaneId lane, OpId op, std::int64_t begin) {
  begins_[op] = begin;
  admission_.begin(lane, op);
  ++heads_[lane].number;
  ++heads_[lane].in_flight;
  look_at_next(lane);
  if (const LaneId holder = holder_of_[lane]; holder != SearchModel::kNoLane) {
    --heads_[holder].in_flight;
  }
  --left_;
}

void ListScheduler::send(LaneId from, OpId op, std::int64_t end) {
  const std::uint32_t number = op - model_.id(from, 0);
  const auto source = static_cast<std::size_t>(model_.lanes[from].rank);
  for (const SearchModel::Edge& edge : model_.outputs(from)) {
    const SearchModel::Lane& to = model_.lanes[edge.lane];
    std::int64_t arrival = end + edge.lag;
    if (edge.occupancy > 0) {
      std::int64_t& free = link_free_[source * model_.ranks() + static_cast<std::size_t>(to.rank)];
      free = std::max(free, end) + edge.occupancy;
      arrival = free + edge.lag - edge.occupancy;
    }
    const OpId target = model_.id(edge.lane, number);
    if (to.inputs > 1) {
      partial_[target] = std::max(partial_[target], arrival);
      if (++got_[target] < to.inputs) continue;
      arrival = partial_[target];
    }
    arrivals_[target] = arrival;
    const auto rank = static_cast<std::uint32_t>(to.rank);
    Head& head = heads_[edge.lane];
    if (head.number != number) continue;
    head.arrival = arrival;
    if (to.rank != model_.lanes[from].rank) {
      wake(rank, std::max(arrival, clocks_[rank]));
    }
  }
}

void ListScheduler::finish(std::uint32_t rank, std::int64_t end) {
  clocks_[rank] = end;
  last_end_ = std::max(last_end_, end + model_.rank_tail[rank]);
  wake(rank, end);
}

}  // namespace counterflow

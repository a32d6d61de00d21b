// Schedules as orders of a SearchModel, and back.
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {
namespace {

using LaneId = SearchModel::LaneId;
using OpId = SearchModel::OpId;

}  // namespace

Schedule SearchModel::schedule(const Orders& orders) const {
  Schedule result;
  result.ranks.resize(orders.size());
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    for (std::size_t i = 0; i < orders[rank].size(); ++i) {
      Slot slot{op(orders[rank][i] & ~kFused), {}};
      if ((orders[rank][i] & kFused) != 0) {
        const OpId second = orders[rank][++i];
        slot.second = op(second);
        if (weight_lane[lane_of(second)] != kNoLane) slot.second.kind = OpKind::backward;
      }
      result.ranks[rank].push_back(slot);
    }
  }
  return with_restores(*problem, std::move(result));
}

namespace {

// Finds the ids of a problem's ops.
class Finder {
 public:
  explicit Finder(const SearchModel& model) : model_(model) {
    const Problem& problem = *model.problem;
    number_.assign(static_cast<std::size_t>(problem.microbatches), 0);
    for (const auto& sequence : model.sequences) {
      for (std::size_t number = 0; number < sequence.size(); ++number) {
        number_[static_cast<std::size_t>(sequence[number])] = static_cast<std::uint32_t>(number);
      }
    }
    const auto cells = static_cast<std::size_t>(problem.stages()) *
                       static_cast<std::size_t>(problem.placement.replicas());
    for (auto& table : lane_) table.assign(cells, SearchModel::kNoLane);
    for (LaneId lane = 0; lane < model.lanes.size(); ++lane) {
      const SearchModel::Lane& each = model.lanes[lane];
      lane_[kind_index(each.kind)][cell(each.replica, each.stage)] = lane;
    }
  }

  // The id of an op, kNoLane's where the model has no such lane.
  [[nodiscard]] LaneId lane(OpKind kind, const Op& op) const {
    return lane_[kind_index(kind)][cell(op.replica, op.stage)];
  }
  [[nodiscard]] OpId id(LaneId lane, const Op& op) const {
    return model_.id(lane, number_[static_cast<std::size_t>(op.microbatch)]);
  }

 private:
  // I and B share a lane.
  static std::size_t kind_index(OpKind kind) {
    return kind == OpKind::forward ? 0 : kind == OpKind::backward_weight ? 2 : 1;
  }
  [[nodiscard]] std::size_t cell(int replica, Stage stage) const {
    return static_cast<std::size_t>(replica) * static_cast<std::size_t>(model_.problem->stages()) +
           static_cast<std::size_t>(stage);
  }

  const SearchModel& model_;
  std::vector<std::uint32_t> number_;        // [microbatch]
  std::array<std::vector<LaneId>, 3> lane_;  // [F, G, W][chunk]
};

void append(const SearchModel& model, const Finder& finder, const Op& op,
            std::vector<OpId>& order) {
  const LaneId lane = finder.lane(op.kind, op);
  order.push_back(finder.id(lane, op));
  if (op.kind != OpKind::backward) return;
  if (const LaneId w = model.weight_lane[lane]; w != SearchModel::kNoLane) {
    order.push_back(finder.id(w, op));
  }
}

}  // namespace

SearchModel::Orders SearchModel::orders(const Schedule& schedule) const {
  const Finder finder(*this);
  Orders result(ranks());
  for (std::size_t rank = 0; rank < result.size(); ++rank) {
    std::vector<OpId>& order = result[rank];
    order.reserve(schedule.ranks[rank].size());
    for (const Slot& slot : schedule.ranks[rank]) {
      if (restores_or_stores(slot.first.kind)) continue;
      if (slot.is_pair() && has_pairs) {
        const LaneId f = finder.lane(slot.first.kind, slot.first);
        const LaneId g = finder.lane(slot.second.kind, slot.second);
        const OpId first = finder.id(f, slot.first);
        const OpId second = finder.id(g, slot.second);
        if (pair_duration(f, first, g, second) >= 0) {
          order.push_back(first | kFused);
          order.push_back(second);
          continue;
        }
      }
      append(*this, finder, slot.first, order);
      if (slot.is_pair()) append(*this, finder, slot.second, order);
    }
  }
  return result;
}

}  // namespace counterflow

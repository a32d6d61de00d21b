#include "schedules/slot_grid.h"

#include <algorithm>
#include <utility>

namespace counterflow {

Schedule order_by_slot(std::vector<std::vector<PlacedOp>> ranks) {
  Schedule schedule;
  for (auto& placed : ranks) {
    std::sort(placed.begin(), placed.end(),
              [](const PlacedOp& a, const PlacedOp& b) { return a.slot < b.slot; });
    std::vector<Slot> order;
    order.reserve(placed.size());
    for (const PlacedOp& item : placed) order.push_back({item.op, {}});
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

}  // namespace counterflow

#pragma once

#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {

// What the ranks hold along their orders. Memory depends on the orders alone: an op allocates when
// it begins and frees when it ends, one after the other on a rank.
class OrderMemory {
 public:
  explicit OrderMemory(const SearchModel& model);

  // Are the orders within the limits? O(ops).
  [[nodiscard]] bool fits(const SearchModel::Orders& orders) const;
  [[nodiscard]] bool fits(std::size_t rank, const std::vector<SearchModel::OpId>& order) const;

 private:
  const SearchModel& model_;
};

}  // namespace counterflow

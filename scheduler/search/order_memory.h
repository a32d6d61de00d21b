#pragma once

#include <array>
#include <cstdint>
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
  // What an op allocates at its begin and frees at its end; of a fused G its W as well.
  struct Change {
    std::int64_t allocated = 0;
    std::int64_t freed = 0;
    std::int64_t freed_in_pair = 0;
  };

  const SearchModel& model_;
  std::array<std::vector<Change>, SearchModel::kResources> changes_;  // [op]; empty: no limits
};

}  // namespace counterflow

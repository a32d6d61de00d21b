#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {

// The best orders found, the best first, each makespan-and-order once.
class Elite {
 public:
  struct Member {
    std::int64_t makespan = 0;
    SearchModel::Orders orders;
  };

  explicit Elite(std::size_t capacity) : capacity_(capacity) {}

  // Keeps the orders if they are among the best.
  void add(std::int64_t makespan, const SearchModel::Orders& orders);
  // What an order must stay below to be kept.
  [[nodiscard]] std::int64_t cutoff() const {
    return members_.size() < capacity_ ? SearchModel::kUnlimited : members_.back().makespan;
  }
  [[nodiscard]] bool empty() const { return members_.empty(); }
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] const Member& operator[](std::size_t i) const { return members_[i]; }
  [[nodiscard]] std::int64_t best() const {
    return members_.empty() ? SearchModel::kUnlimited : members_.front().makespan;
  }

 private:
  std::size_t capacity_;
  std::vector<Member> members_;
};

}  // namespace counterflow

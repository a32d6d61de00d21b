#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow::reference {

// The sum of one vector a microbatch, in the order of the microbatches whatever the order they come
// in: the bits are the same for every schedule. Those that come early wait.
template <typename T>
class OrderedSum {
 public:
  OrderedSum() = default;
  // Of vectors of `size` elements, one for each of these microbatches, which must ascend.
  OrderedSum(std::size_t size, std::vector<Microbatch> order)
      : order_(std::move(order)), sum_(size) {}

  void add(Microbatch microbatch, std::vector<T> term) {
    early_.emplace(microbatch, std::move(term));
    while (next_ < order_.size() && !early_.empty() && early_.begin()->first == order_[next_]) {
      const std::vector<T>& first = early_.begin()->second;
      for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += first[i];
      early_.erase(early_.begin());
      ++next_;
    }
  }
  [[nodiscard]] bool complete() const { return next_ == order_.size(); }
  [[nodiscard]] std::span<T> value() { return sum_; }
  [[nodiscard]] std::span<const T> value() const { return sum_; }

 private:
  std::vector<Microbatch> order_;
  std::size_t next_ = 0;  // into order_
  std::vector<T> sum_;
  std::map<Microbatch, std::vector<T>> early_;
};

}  // namespace counterflow::reference

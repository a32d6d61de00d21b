#pragma once

#include <barrier>
#include <cstddef>
#include <utility>
#include <vector>

#include "reference/ep_backend.h"

namespace counterflow::reference {

// An expert-parallel group of threads: who shares it and how they meet.
template <typename T>
class EpThreadGroup {
 public:
  explicit EpThreadGroup(std::size_t members)
      : parts_(members), barrier_(static_cast<std::ptrdiff_t>(members)) {}
  [[nodiscard]] std::size_t members() const { return parts_.size(); }

  [[nodiscard]] typename EpBackend<T>::Parts exchange(std::size_t member,
                                                      typename EpBackend<T>::Parts parts) {
    parts_[member] = std::move(parts);
    barrier_.arrive_and_wait();  // all have brought theirs
    typename EpBackend<T>::Parts received;
    for (auto& from : parts_) received.push_back(std::move(from[member]));
    barrier_.arrive_and_wait();  // all have taken theirs
    return received;
  }

 private:
  std::vector<typename EpBackend<T>::Parts> parts_;  // [member]
  std::barrier<> barrier_;
};

// One member of it.
template <typename T>
class EpThread final : public EpBackend<T> {
 public:
  using typename EpBackend<T>::Parts;
  EpThread(EpThreadGroup<T>& group, std::size_t member) : group_(group), member_(member) {}
  [[nodiscard]] std::size_t members() const override { return group_.members(); }
  [[nodiscard]] std::size_t member() const override { return member_; }
  [[nodiscard]] Parts exchange(Parts parts) override {
    return group_.exchange(member_, std::move(parts));
  }

 private:
  EpThreadGroup<T>& group_;
  std::size_t member_;
};

}  // namespace counterflow::reference

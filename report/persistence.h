#pragma once

#include <algorithm>
#include <cmath>

namespace counterflow {

// Whether something is slow again and again: a walk over the steps, one up where it is slow, three
// down where it is not, never below zero. So only what is slow in more than three steps of four
// rises. What is slow by chance in a share q of the steps is at height h with probability about
// q^h, which says how high the walk must be before many of them are taken for slow.
class Persistence {
 public:
  static constexpr double kSlow = 0.09531;  // log 1.1

  // `excess` is the logarithm of how many times as long as its like it took in this step. Steps
  // come in order, all of them.
  void add(int step, double excess) {
    // What one step may say, log 1/4 to log 1000: times of nothing are no measurements.
    constexpr double kLeast = -1.3863;
    constexpr double kMost = 6.9078;
    constexpr int kDown = 3;
    if (height_ == 0) {
      since_ = step;
      sum_ = 0;
    }
    last_ = step;
    sum_ += std::clamp(excess, kLeast, kMost);
    const bool slow = excess >= kSlow;
    slow_steps_ += slow ? 1 : 0;
    height_ = slow ? height_ + 1 : std::max(0, height_ - kDown);
  }

  // Would of `tests` of them, each slow by chance in a share `chance` of the steps, one in a
  // hundred times any be as high?
  [[nodiscard]] bool is_slow(double chance, double tests) const {
    constexpr double kFalseAlarms = 0.01;
    constexpr int kLeastSteps = 3;
    if (height_ < kLeastSteps || chance >= 1) return false;
    return height_ * -std::log(chance) >= std::log(tests / kFalseAlarms) && excess() >= kSlow;
  }
  // The step from which on, and the mean excess since, as a logarithm.
  [[nodiscard]] int since() const { return since_; }
  [[nodiscard]] double excess() const { return sum_ / (last_ - since_ + 1); }
  [[nodiscard]] int slow_steps() const { return slow_steps_; }

 private:
  int height_ = 0;
  int since_ = 0;
  int last_ = 0;
  int slow_steps_ = 0;
  double sum_ = 0;
};

}  // namespace counterflow

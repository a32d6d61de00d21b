#include "scheduler/bounds/edge_finding.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace counterflow {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 4;

// For one deadline D: the ops that must end by D, all together and from each begin on, need so much
// time that an op with a later deadline has no room before the last of them has ended.
class Deadline {
 public:
  Deadline(const std::vector<TimedOp>& ops, const std::vector<std::size_t>& by_begin,
           std::int64_t deadline)
      : ops_(ops), by_begin_(by_begin), deadline_(deadline), done_from_(ops.size()) {}

  // The earliest end of the ops that must end by D, over those that begin at or after each begin.
  bool fits() {
    for (std::size_t k = by_begin_.size(); k-- > 0;) {
      const TimedOp& op = ops_[by_begin_[k]];
      if (op.latest <= deadline_) {
        work_ += op.duration;
        done_ = std::max(done_, op.earliest + work_);
      }
      done_from_[k] = done_;
    }
    return done_ <= deadline_;
  }

  void raise(std::vector<std::int64_t>& earliest) {
    std::int64_t done_before = kNever;
    for (std::size_t k = 0; k < by_begin_.size(); ++k) {
      const std::size_t index = by_begin_[k];
      const TimedOp& op = ops_[index];
      if (op.latest <= deadline_) {
        done_before = std::max(done_before, op.earliest + work_);
        work_ -= op.duration;
        continue;
      }
      if (op.earliest + work_ + op.duration > deadline_) {
        earliest[index] = std::max(earliest[index], done_from_[k]);
      }
      if (done_before + op.duration > deadline_) {
        earliest[index] = std::max(earliest[index], done_);
      }
    }
  }

 private:
  const std::vector<TimedOp>& ops_;
  const std::vector<std::size_t>& by_begin_;
  std::int64_t deadline_;
  std::vector<std::int64_t> done_from_;
  std::int64_t work_ = 0;
  std::int64_t done_ = kNever;
};

}  // namespace

bool find_edges(std::vector<TimedOp>& ops) {
  std::vector<std::size_t> by_begin(ops.size());
  std::iota(by_begin.begin(), by_begin.end(), std::size_t{0});
  std::sort(by_begin.begin(), by_begin.end(),
            [&](std::size_t a, std::size_t b) { return ops[a].earliest < ops[b].earliest; });
  std::vector<std::int64_t> earliest;
  for (const TimedOp& op : ops) earliest.push_back(op.earliest);
  std::vector<std::int64_t> deadlines;
  for (const TimedOp& op : ops) deadlines.push_back(op.latest);
  std::sort(deadlines.begin(), deadlines.end());
  deadlines.erase(std::unique(deadlines.begin(), deadlines.end()), deadlines.end());
  for (const std::int64_t at : deadlines) {
    Deadline deadline(ops, by_begin, at);
    if (!deadline.fits()) return false;
    deadline.raise(earliest);
  }
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i].earliest = earliest[i];
  return true;
}

}  // namespace counterflow

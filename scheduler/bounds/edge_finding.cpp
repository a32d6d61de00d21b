#include "scheduler/bounds/edge_finding.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace counterflow {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 4;

// For one deadline D: the ops that must end by D, all together and from each begin on, need so much
// time that an op with a later deadline has no room before the last of them has ended.
class EdgeFinder {
 public:
  // Ops stand by earliest begin.
  explicit EdgeFinder(const std::vector<TimedOp>& ops)
      : ops_(ops), done_from_(ops.size(), kNever), raised_(ops.size()) {
    for (std::size_t k = 0; k < ops.size(); ++k) raised_[k] = ops[k].earliest;
  }
  [[nodiscard]] const std::vector<std::int64_t>& raised() const { return raised_; }

  bool apply(std::int64_t deadline) {
    // The end of the ops that must end by D, over those from each begin on.
    std::int64_t work = 0;
    std::int64_t done = kNever;
    for (std::size_t k = ops_.size(); k-- > 0;) {
      const TimedOp& op = ops_[k];
      if (op.latest <= deadline) {
        work += op.duration;
        done = std::max(done, op.earliest + work);
      }
      done_from_[k] = done;
    }
    if (done > deadline) return false;
    raise(deadline, work, done);
    return true;
  }

 private:
  void raise(std::int64_t deadline, std::int64_t work, std::int64_t done) {
    std::int64_t done_before = kNever;
    for (std::size_t k = 0; k < ops_.size(); ++k) {
      const TimedOp& op = ops_[k];
      if (op.latest <= deadline) {
        done_before = std::max(done_before, op.earliest + work);
        work -= op.duration;
        continue;
      }
      if (done_before + op.duration > deadline) {
        raised_[k] = std::max(raised_[k], done);
      } else if (op.earliest + work + op.duration > deadline) {
        raised_[k] = std::max(raised_[k], done_from_[k]);
      }
    }
  }

  const std::vector<TimedOp>& ops_;
  std::vector<std::int64_t> done_from_;  // [op]
  std::vector<std::int64_t> raised_;     // [op]
};

}  // namespace

bool find_edges(std::vector<TimedOp>& ops) {
  std::sort(ops.begin(), ops.end(),
            [](const TimedOp& a, const TimedOp& b) { return a.earliest < b.earliest; });
  std::vector<std::int64_t> deadlines;
  deadlines.reserve(ops.size());
  for (const TimedOp& op : ops) deadlines.push_back(op.latest);
  std::sort(deadlines.begin(), deadlines.end());
  deadlines.erase(std::unique(deadlines.begin(), deadlines.end()), deadlines.end());
  EdgeFinder finder(ops);
  for (const std::int64_t deadline : deadlines) {
    if (!finder.apply(deadline)) return false;
  }
  for (std::size_t k = 0; k < ops.size(); ++k) ops[k].earliest = finder.raised()[k];
  return true;
}

}  // namespace counterflow

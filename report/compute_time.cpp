#include "report/compute_time.h"

#include <algorithm>

namespace counterflow {
namespace {

// The step ends with these, whatever a compute stream does afterwards.
bool is_pipeline_work(OpKind kind) {
  return kind == OpKind::forward || is_backward(kind);
}

// Length of the union of intervals.
Time covered(std::vector<Interval>& intervals) {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), earlier)) {
    std::sort(intervals.begin(), intervals.end(), earlier);
  }
  Time sum{0};
  Time reached = intervals.empty() ? Time{0} : intervals.front().begin;
  for (const Interval& interval : intervals) {
    if (interval.end <= reached) continue;
    sum += interval.end - std::max(interval.begin, reached);
    reached = interval.end;
  }
  return sum;
}

double share(Time part, Time whole) {
  return whole.count() == 0
             ? 0
             : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

}  // namespace

void ComputeTime::add(OpKind kind, Interval when) {
  if (!is_compute(kind) || when.begin.count() < 0) return;
  work_.push_back(when);
  if (!is_pipeline_work(kind)) return;
  if (!extent_) extent_ = when;
  extent_->begin = std::min(extent_->begin, when.begin);
  extent_->end = std::max(extent_->end, when.end);
}

std::optional<RankReport> ComputeTime::report() && {
  if (!extent_) return std::nullopt;
  RankReport report;
  report.busy = covered(work_);
  report.first_start = extent_->begin;
  report.last_end = extent_->end;
  return report;
}

void Totals::add(const RankReport& rank) {
  first_ = any_ ? std::min(first_, rank.first_start) : rank.first_start;
  last_ = any_ ? std::max(last_, rank.last_end) : rank.last_end;
  any_ = true;
  const Time span = rank.last_end - rank.first_start;
  const Time idle = span - rank.busy;
  // Of ranks that are equally long, the one that idles most.
  if (span > span_ || (span == span_ && idle > span_idle_)) {
    span_ = span;
    span_idle_ = idle;
  }
}

void Totals::write(Report& report) const {
  report.makespan = last_ - first_;
  report.span = span_;
  report.span_bubble_fraction = share(span_idle_, span_);
  double idle = 0;
  for (RankReport& rank : report.per_rank) {
    rank.idle = report.makespan - rank.busy;
    idle += static_cast<double>(rank.idle.count());
  }
  if (report.makespan.count() > 0) {
    report.bubble_fraction = idle / (static_cast<double>(report.per_rank.size()) *
                                     static_cast<double>(report.makespan.count()));
  }
}

}  // namespace counterflow

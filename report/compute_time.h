#pragma once

#include <optional>
#include <vector>

#include "report/report.h"

// The figures of a report that follow from when computes ran: of one rank, and over all.
namespace counterflow {

// What the compute streams of one rank did.
class ComputeTime {
 public:
  // What ran there; anything but a compute, and what never began, does not count.
  void add(OpKind kind, Interval when);

  // busy, first_start and last_end; nothing if the rank computed nothing. O(n) where computes were
  // added in time's order, else O(n log n).
  [[nodiscard]] std::optional<RankReport> report() &&;

 private:
  std::vector<Interval> work_;
  std::optional<Interval> extent_;
};

// The figures over all ranks, from those of each.
class Totals {
 public:
  void add(const RankReport& rank);

  // When the first op began.
  [[nodiscard]] Time first() const { return first_; }

  // Fills in makespan, span and their bubbles, and what each of report.per_rank idles.
  void write(Report& report) const;

 private:
  bool any_ = false;
  Time first_{0};
  Time last_{0};
  Time span_{0};
  Time span_idle_{0};
};

}  // namespace counterflow

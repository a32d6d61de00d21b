#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "report/even_sample.h"
#include "report/own_time.h"
#include "report/persistence.h"
#include "report/run_statistics.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// The statistics of a run, from one step after the other: memory does not grow with the steps.
class StepStatistics {
 public:
  // The prediction is of this program, which must outlive it. O(instructions).
  StepStatistics(const Program& program, const Timeline& predicted);

  // The next step, which ran to its end, and its makespan. O(instructions).
  void add(const Timeline& step, Time makespan);

  [[nodiscard]] RunStatistics result() const;

 private:
  using Kind = std::pair<OpKind, OpKind>;  // of an instruction's op, and of what it is paired with
  static constexpr std::size_t kSampled = 256;

  // The instructions of one kind on one rank.
  struct Group {
    Rank rank = 0;
    Kind kind;
    std::vector<std::uint32_t> instructions;
    std::vector<double> expected;  // by the prediction, ns; empty where it has none for some
    double predicted = 0;          // sum, ns
    double total = 0;              // sum over steps, ns
    double of_step = 0;            // sum of the last one
    double since = 0;              // sum over the steps from pace.since() on
    EvenSample<double> medians{kSampled};
    EvenSample<double> spreads{kSampled};
    Persistence pace;
    std::vector<Persistence> ops;  // as instructions
    [[nodiscard]] bool is_judged() const { return !expected.empty(); }
  };
  // The groups of one kind: a range of groups_.
  struct OfKind {
    Kind kind;
    std::size_t first = 0;
    std::size_t count = 0;
    EvenSample<double> times{kSampled};  // of a step, ns a rank
  };

  void make_groups(const std::vector<std::vector<Time>>& predicted);
  // Adds a step's times; the median logarithm of how long ops took of what they should.
  double add(Group& group, const std::vector<Time>& own) const;
  void compare_ranks(OfKind& kind, const std::vector<double>& paces);
  void find_slow_ranks(const OfKind& kind, std::vector<Straggler>& found) const;
  void find_slow_ops(const OfKind& kind, std::vector<Straggler>& found) const;
  [[nodiscard]] RunStatistics::OfRank figures(const Group& group) const;

  const Program& program_;
  const OwnTimes own_times_;
  Time predicted_makespan_{0};
  int steps_ = 0;
  EvenSample<double> makespans_{kSampled};
  std::vector<Group> groups_;  // by kind, then by rank
  std::vector<OfKind> kinds_;
};

}  // namespace counterflow

#include "simulator/stoppage.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "scheduler/graph/matching.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/instruction_text.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

class Explainer {
 public:
  Explainer(const Program& program, const Timeline& timeline, const Scenario& scenario)
      : program_(program), timeline_(timeline), scenario_(scenario), matching_(program) {}

  Stoppage explain() const {
    Stoppage stoppage;
    for (std::uint32_t rank = 0; rank < program_.ranks.size(); ++rank) {
      const auto& times = times_of(rank);
      Stoppage::OfRank of_rank{0, times.size()};
      for (const Interval& interval : times) {
        of_rank.finished += interval.end >= Time{0} ? 1U : 0U;
        stoppage.last_progress = std::max(stoppage.last_progress, interval.end);
      }
      stoppage.ranks.push_back(of_rank);
      if (of_rank.finished < times.size()) stoppage.blocked.push_back(first_blocked(rank));
    }
    std::ranges::stable_sort(stoppage.blocked, {}, [](const Stoppage::Blocked& each) {
      return std::tuple(each.cause, each.since, !each.sends);
    });
    return stoppage;
  }

 private:
  [[nodiscard]] const std::vector<Interval>& times_of(std::uint32_t rank) const {
    return timeline_.ranks[rank].instructions;
  }
  [[nodiscard]] const Instruction& instruction(std::uint32_t rank, std::uint32_t index) const {
    return program_.ranks[rank].instructions[index];
  }

  [[nodiscard]] std::optional<Time> failure_of(std::uint32_t rank) const {
    for (const Scenario::Failure& failure : scenario_.failures) {
      if (failure.rank == static_cast<Rank>(rank)) return failure.at;
    }
    return std::nullopt;
  }

  [[nodiscard]] Stoppage::Blocked first_blocked(std::uint32_t rank) const {
    const auto& times = times_of(rank);
    Stoppage::Blocked blocked;
    blocked.rank = static_cast<Rank>(rank);
    while (times[blocked.index].end >= Time{0}) {
      blocked.since = std::max(blocked.since, times[blocked.index++].end);
    }
    blocked.since = std::max(blocked.since, times[blocked.index].begin);
    if (const auto failure = failure_of(rank)) {
      blocked.cause = Stoppage::Cause::failure;
      blocked.since = *failure;
      blocked.reason = fmt::format("the rank failed at {} ns", failure->count());
    } else if (const auto message = dead_message(rank)) {
      blocked.cause = Stoppage::Cause::link;
      blocked.index = message->index;
      blocked.since = message->since;
      blocked.sends = message->transfer.is_send;
      blocked.reason = reason_of(*message, rank);
    } else {
      blocked.reason = reason(rank, blocked.index);
    }
    blocked.what = called(program_.ranks[rank], instruction(rank, blocked.index));
    return blocked;
  }

  // A message whose ends have both begun and that does not arrive.
  struct DeadMessage {
    std::uint32_t index = 0;  // of its instruction here
    Transfer transfer;
    Op sent_by;
    Time since{0};
  };

  // The one of a rank that stands still for longest.
  [[nodiscard]] std::optional<DeadMessage> dead_message(std::uint32_t rank) const {
    std::optional<DeadMessage> first;
    const auto& times = times_of(rank);
    for (std::uint32_t i = 0; i < times.size(); ++i) {
      if (times[i].begin < Time{0} || times[i].end >= Time{0}) continue;
      if (instruction(rank, i).kind != InstructionKind::transfer) continue;
      const Range body = instruction(rank, i).body;
      for (std::uint32_t t = body.first; t < body.first + body.count; ++t) {
        const Matching::End other = matching_.partner(rank, t);
        if (!other.exists() || failure_of(other.rank)) continue;
        const Interval& there =
            times_of(other.rank)[matching_.instruction(other.rank, other.transfer)];
        if (there.begin < Time{0} || (there.end >= Time{0} && body.count > 1)) continue;
        const Time since = std::max(times[i].begin, there.begin);
        if (first && first->since <= since) continue;
        const Transfer& transfer = program_.ranks[rank].transfers[t];
        const Matching::End sender = transfer.is_send ? Matching::End{rank, t} : other;
        const std::uint32_t send = matching_.instruction(sender.rank, sender.transfer);
        first = {i, transfer,
                 op_of(instruction(sender.rank, send),
                       program_.ranks[sender.rank].transfers[sender.transfer]),
                 since};
      }
    }
    return first;
  }

  [[nodiscard]] static std::string reason_of(const DeadMessage& message, std::uint32_t rank) {
    const bool sends = message.transfer.is_send;
    return fmt::format(
        "waits for the message of {}, which stands still on the link from rank {} to rank {}",
        to_string(message.sent_by), sends ? rank : message.transfer.peer,
        sends ? message.transfer.peer : rank);
  }

  [[nodiscard]] std::string reason(std::uint32_t rank, std::uint32_t index) const {
    if (times_of(rank)[index].begin < Time{0}) return "waits for an event of its own rank";
    switch (instruction(rank, index).kind) {
      case InstructionKind::transfer:
        return reason_of_transfer(rank, instruction(rank, index).body);
      case InstructionKind::collective:
        return "waits for the other members of its collective";
      default:
        return "does not come to its end";
    }
  }

  [[nodiscard]] std::string reason_of_transfer(std::uint32_t rank, Range body) const {
    for (std::uint32_t t = body.first; t < body.first + body.count; ++t) {
      const Matching::End other = matching_.partner(rank, t);
      if (!other.exists()) {
        return fmt::format("waits for rank {}, which has no such transfer",
                           program_.ranks[rank].transfers[t].peer);
      }
      const std::uint32_t index = matching_.instruction(other.rank, other.transfer);
      const Interval& when = times_of(other.rank)[index];
      if (when.end >= Time{0} && body.count > 1) continue;  // this one may have come
      const std::string op = to_string(instruction(other.rank, index).op);
      if (failure_of(other.rank) && when.end < Time{0}) {
        return fmt::format("waits for {} of rank {}, which failed", op, other.rank);
      }
      return fmt::format("waits for {} of rank {}, which has not come to it", op, other.rank);
    }
    return "waits for the rest of its group";
  }

  const Program& program_;
  const Timeline& timeline_;
  const Scenario& scenario_;
  const Matching matching_;
};

}  // namespace

Stoppage explain_stop(const Program& program, const Timeline& timeline, const Scenario& scenario) {
  return Explainer(program, timeline, scenario).explain();
}

}  // namespace counterflow

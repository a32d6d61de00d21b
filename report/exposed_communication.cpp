#include "report/exposed_communication.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/graph/recordings.h"

namespace counterflow {
namespace {

class Exposure {
 public:
  Exposure(const Program& program, const Timeline& timeline, const Matching& matching,
           std::size_t rank)
      : timeline_(timeline),
        matching_(matching),
        rank_(rank),
        instructions_(program.ranks[rank]),
        times_(timeline.ranks[rank].instructions),
        recordings_(instructions_),
        streams_(instructions_.streams.size()) {}

  [[nodiscard]] Time total() {
    Time sum{0};
    for (std::uint32_t i = 0; i < times_.size(); ++i) {
      const Instruction& instruction = instructions_.instructions[i];
      if (times_[i].begin.count() < 0) continue;
      StreamState& stream = streams_[instruction.stream];
      if (instruction.kind == InstructionKind::run) {
        sum += before(instruction, i, stream);
        stream = {times_[i].end, std::nullopt};
      } else if (receives(instruction) &&
                 (!stream.receive || times_[i].end > times_[*stream.receive].end)) {
        stream.receive = i;
      }
    }
    return sum;
  }

 private:
  struct StreamState {
    std::optional<Time> compute_end;       // of the op before
    std::optional<std::uint32_t> receive;  // issued on this very stream since; the last to end
  };

  [[nodiscard]] bool receives(const Instruction& instruction) const {
    const auto transfers = instructions_.transfers_of(instruction);
    return std::any_of(transfers.begin(), transfers.end(),
                       [](const Transfer& t) { return !t.is_send; });
  }

  static bool gathers(const Instruction& instruction) {
    return instruction.kind == InstructionKind::collective &&
           instruction.op.kind == OpKind::unshard;
  }
  [[nodiscard]] bool brings(const Instruction& instruction) const {
    return receives(instruction) || gathers(instruction);
  }

  // The exposed part of the gap before instruction i.
  [[nodiscard]] Time before(const Instruction& instruction, std::uint32_t i,
                            const StreamState& stream) const {
    if (!stream.compute_end || *stream.compute_end >= times_[i].begin) return Time{0};
    std::optional<std::uint32_t> latest;
    for (const EventWait wait : instructions_.waits_of(instruction)) {
      const std::uint32_t recorder = recordings_.recorder(wait);
      if (recorder == kNone || !brings(instructions_.instructions[recorder])) continue;
      if (!latest || times_[recorder].end > times_[*latest].end) latest = recorder;
    }
    // A receive on this stream held the op up if the op began the moment it ended.
    if (stream.receive && times_[*stream.receive].end == times_[i].begin &&
        (!latest || times_[*latest].end < times_[i].begin)) {
      latest = stream.receive;
    }
    if (!latest) return Time{0};
    const bool gather = gathers(instructions_.instructions[*latest]);
    const auto under_way =
        gather ? times_[*latest].begin : send_begin(instructions_.instructions[*latest]);
    if (!under_way) return Time{0};
    const Time from = std::max(*under_way, *stream.compute_end);
    const Time to = std::min(times_[*latest].end, times_[i].begin);
    return std::max(to - from, Time{0});
  }

  // When the last message of a receive began to be sent.
  [[nodiscard]] std::optional<Time> send_begin(const Instruction& receive) const {
    std::optional<Time> latest;
    for (std::uint32_t k = 0; k < receive.body.count; ++k) {
      const std::uint32_t transfer = receive.body.first + k;
      const Matching::End sender = matching_.partner(rank_, transfer);
      if (instructions_.transfers[transfer].is_send || !sender.exists()) continue;
      const std::uint32_t send = matching_.instruction(sender.rank, sender.transfer);
      const Time begin = timeline_.ranks[sender.rank].instructions[send].begin;
      if (!latest || begin > *latest) latest = begin;
    }
    return latest;
  }

  const Timeline& timeline_;
  const Matching& matching_;
  std::size_t rank_;
  const RankProgram& instructions_;
  const std::vector<Interval>& times_;
  Recordings recordings_;
  std::vector<StreamState> streams_;  // [stream]
};

}  // namespace

Time exposed_communication(const Program& program, const Timeline& timeline,
                           const Matching& matching, std::size_t rank) {
  return Exposure(program, timeline, matching, rank).total();
}

}  // namespace counterflow

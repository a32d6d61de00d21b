#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

// Whatever an instruction reads was made before, by an instruction of its rank that surely has
// ended: because the stream is in order, or because an event says so.
namespace counterflow::rules {
namespace {

// Which instruction of a rank makes or brings each value that may be read there. A stage copy, and
// the far end of a channel, live on one rank each, so all ranks share the tables.
class Makers {
 public:
  Makers(const Problem& problem, const Channels& channels)
      : stages_(static_cast<std::size_t>(problem.stages())),
        microbatches_(static_cast<std::size_t>(problem.microbatches)),
        computed_(
            2 * static_cast<std::size_t>(problem.placement.replicas()) * stages_ * microbatches_,
            kNone),
        received_(channels.size() * microbatches_, kNone) {}

  // The F, or the B or I, of a stage and microbatch.
  std::uint32_t& computed(const Op& op) {
    const std::size_t gradient = op.kind == OpKind::forward ? 0 : 1;
    return computed_[((2 * std::size_t{op.replica} + gradient) * stages_ + op.stage) *
                         microbatches_ +
                     static_cast<std::size_t>(op.microbatch)];
  }
  std::uint32_t& received(Channels::Id id, Microbatch microbatch) {
    return received_[id * microbatches_ + static_cast<std::size_t>(microbatch)];
  }

 private:
  std::size_t stages_, microbatches_;
  std::vector<std::uint32_t> computed_, received_;
};

class RankDataflow {
 public:
  RankDataflow(const Problem& problem, const Channels& channels, Makers& makers,
               const Program& program, const References& references, std::size_t rank,
               Diagnostics& out)
      : problem_(problem),
        channels_(channels),
        makers_(makers),
        rank_(static_cast<Rank>(rank)),
        list_(program.ranks[rank]),
        recordings_(references.recordings[rank]),
        out_(out) {}

  void check() {
    for (std::uint32_t i = 0; i < list_.instructions.size(); ++i) note(i);
    previous_.assign(list_.instructions.size(), kNone);
    std::vector<std::uint32_t> last(list_.streams.size(), kNone);
    for (std::uint32_t i = 0; i < list_.instructions.size(); ++i) {
      previous_[i] = std::exchange(last[list_.instructions[i].stream], i);
      check(i);
    }
  }

 private:
  // The first maker counts; others are faults of another kind.
  static void set(std::uint32_t& maker, std::uint32_t index) {
    if (maker == kNone) maker = index;
  }

  void note(std::uint32_t index) {
    const Instruction& instruction = list_.instructions[index];
    if (instruction.kind == InstructionKind::run) {
      for (const Op& op : {instruction.op, instruction.paired}) {
        if (op.kind == OpKind::forward || makes_input_gradient(op.kind)) {
          set(makers_.computed(op), index);
        }
      }
    }
    for (const Transfer& transfer : list_.transfers_of(instruction)) {
      const auto id = channels_.find(transfer.payload);
      if (transfer.is_send || !id || channels_[*id].destination != rank_) continue;
      set(makers_.received(*id, transfer.payload.microbatch), index);
    }
  }

  void check(std::uint32_t index) {
    const Instruction& instruction = list_.instructions[index];
    about_ = instruction.op;
    if (!waits_for_the_past(index)) return;
    if (instruction.kind == InstructionKind::run) {
      for (const Op& op : {instruction.op, instruction.paired}) check_inputs(index, op);
    }
    for (const Transfer& transfer : list_.transfers_of(instruction)) {
      const Payload& payload = transfer.payload;
      if (!transfer.is_send || problem_.placement.rank_of(payload.from, payload.replica) != rank_) {
        continue;
      }
      about_ = op_of(instruction, transfer);
      require(index, makers_.computed(maker_of(payload)));
    }
  }

  bool waits_for_the_past(std::uint32_t index) {
    for (const EventWait& wait : list_.waits_of(list_.instructions[index])) {
      const std::uint32_t source = recordings_.recorder(wait);
      if (source < index) continue;
      if (source == kNone) {
        report(index, "waits for an event that is never recorded");
      } else {
        report_late(index, source);
      }
      return false;
    }
    return true;
  }

  void check_inputs(std::uint32_t index, const Op& op) {
    const auto stage_op = [&op](OpKind kind, Stage stage) {
      return Op{kind, op.replica, static_cast<std::uint16_t>(stage), op.microbatch};
    };
    if (op.kind == OpKind::backward_weight) {
      require(index, makers_.computed(stage_op(OpKind::backward_input, op.stage)));
    } else if (is_backward(op.kind)) {
      require(index, makers_.computed(stage_op(OpKind::forward, op.stage)));
    }
    for (const Channels::Id id : channels_.inputs(op)) {
      const Channels::Channel& channel = channels_[id];
      require(index, channel.crosses_ranks()
                         ? makers_.received(id, op.microbatch)
                         : makers_.computed(maker_of(channel.payload(op.microbatch))));
    }
  }

  // What computes a payload: an F, or the input gradient of a B or I.
  static Op maker_of(const Payload& payload) {
    return {payload.kind == PayloadKind::activation ? OpKind::forward : OpKind::backward_input,
            payload.replica, payload.from, payload.microbatch};
  }

  // `index` reads what `maker` makes. A maker that does not exist is missing, which is another
  // rule's to say, and computes that stand the wrong way round on one stream are faults of order.
  void require(std::uint32_t index, std::uint32_t maker) {
    if (maker == kNone) return;
    if (maker >= index) {
      if (!is_order_of_computes(index, maker)) report_late(index, maker);
    } else if (!ends_before(maker, index)) {
      report(index, fmt::format("may begin before {} has ended, which it needs: let it wait for an "
                                "event of that",
                                text_of(maker)));
    }
  }

  [[nodiscard]] bool is_order_of_computes(std::uint32_t a, std::uint32_t b) const {
    return list_.instructions[a].kind == InstructionKind::run &&
           list_.instructions[b].kind == InstructionKind::run &&
           list_.instructions[a].stream == list_.instructions[b].stream;
  }

  // A receive that is posted may let its stream go on before it ends; computes never do.
  [[nodiscard]] bool holds_stream(std::uint32_t index) const {
    return list_.instructions[index].kind != InstructionKind::transfer;
  }

  [[nodiscard]] bool waits_for(std::uint32_t index, std::uint32_t maker) const {
    const auto waits = list_.waits_of(list_.instructions[index]);
    return std::ranges::any_of(
        waits, [&](const EventWait& wait) { return recordings_.recorder(wait) == maker; });
  }

  [[nodiscard]] bool ends_before(std::uint32_t maker, std::uint32_t index) {
    const bool same_stream = list_.instructions[maker].stream == list_.instructions[index].stream;
    return (same_stream && holds_stream(maker)) || waits_for(index, maker) || reaches(maker, index);
  }

  // Backwards from `index` through streams and events to the end of `maker`: only for programs
  // whose waits are spread over others. O(instructions between the two).
  [[nodiscard]] bool reaches(std::uint32_t maker, std::uint32_t index) const {
    std::vector<bool> seen(index - maker);
    std::vector<std::uint32_t> open{index};
    const auto visit = [&](std::uint32_t before) {
      if (before == kNone || before <= maker || before >= index || seen[before - maker]) return;
      seen[before - maker] = true;
      open.push_back(before);
    };
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (waits_for(at, maker) || (previous_[at] == maker && holds_stream(maker))) return true;
      visit(previous_[at]);
      for (const EventWait& wait : list_.waits_of(list_.instructions[at])) {
        visit(recordings_.recorder(wait));
      }
    }
    return false;
  }

  [[nodiscard]] std::string text_of(std::uint32_t index) const {
    const Instruction& instruction = list_.instructions[index];
    if (instruction.kind != InstructionKind::transfer) return to_string(instruction.op);
    std::string text;
    append_text(text, list_.transfers_of(instruction));
    return text;
  }

  void report_late(std::uint32_t index, std::uint32_t maker) {
    report(index, fmt::format("comes before {}, which it needs", text_of(maker)));
  }

  void report(std::uint32_t index, std::string message) {
    out_.push_back({.rule = "order",
                    .rank = rank_,
                    .index = index,
                    .op = about_,
                    .message = std::move(message)});
  }

  const Problem& problem_;
  const Channels& channels_;
  Makers& makers_;
  Rank rank_;
  const RankProgram& list_;
  const Recordings& recordings_;
  Diagnostics& out_;
  Op about_;                             // of the instruction at hand, what needs something
  std::vector<std::uint32_t> previous_;  // [index] the one before it on its stream
};

}  // namespace

void dataflow(const Problem& problem, const Program& program, const References& references,
              Diagnostics& out) {
  const Channels channels(problem);
  Makers makers(problem, channels);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankDataflow(problem, channels, makers, program, references, rank, out).check();
  }
}

}  // namespace counterflow::rules

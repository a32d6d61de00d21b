#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/graph/channels.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/passes/compute_of.h"
#include "scheduler/passes/passes.h"

// Why the result cannot deadlock: time every op as early as it can go, each lasting at least 1 ns.
// Put all computes (at their begin) and all transfers (at the end of the op that makes the payload)
// of all ranks in one sequence by time, transfers first where times are equal. Every op stands
// after its inputs and before what it feeds. Each rank's list is the part of this sequence that
// concerns it, and a transfer has one place in the sequence, the same for both its ends. So
// whatever subset of a rank's streams blocks, the first thing in the sequence that is not done yet
// can always go on.
namespace counterflow {
namespace {

// One end of a message, with its place in the global sequence.
struct PlacedTransfer {
  std::int64_t at = 0;
  Rank source = 0;
  std::uint32_t producer = 0;  // position in the source's list
  std::uint32_t output = 0;    // which of the producer's outputs
  Channels::Id channel = 0;
  Microbatch microbatch = 0;

  [[nodiscard]] auto place() const { return std::tie(at, source, producer, output); }
};

// Sorts what is a row of ascending runs: one for each rank that sends to this one, and its own.
// O(n log runs).
void merge_ascending_runs(std::vector<PlacedTransfer>& ends) {
  const auto before = [](const auto& a, const auto& b) { return a.place() < b.place(); };
  std::vector<std::ptrdiff_t> bounds{0};
  for (auto at = ends.begin(); at != ends.end(); bounds.push_back(at - ends.begin())) {
    at = std::is_sorted_until(at, ends.end(), before);
  }
  while (bounds.size() > 2) {
    std::vector<std::ptrdiff_t> merged{0};
    for (std::size_t k = 2; k < bounds.size(); k += 2) {
      std::inplace_merge(ends.begin() + bounds[k - 2], ends.begin() + bounds[k - 1],
                         ends.begin() + bounds[k], before);
      merged.push_back(bounds[k]);
    }
    if (bounds.size() % 2 == 0) merged.push_back(bounds.back());
    bounds = std::move(merged);
  }
}

class TransferPlacer {
 public:
  TransferPlacer(const Problem& problem, const Program& program)
      : channels_(problem), program_(program), ends_(program.ranks.size()) {
    Evaluator evaluator(problem, Time{1});
    timing_ = evaluator.evaluate(compute_of(program));
    if (!timing_.complete) {
      throw InfeasibleError(
          "schedule " + program.schedule +
          " deadlocks: some op waits for one that never runs; `verify` shows where");
    }
    count_ends();
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) place_outputs(rank);
    for (auto& ends : ends_) merge_ascending_runs(ends);
  }

  // The rank's list with its transfers in place.
  [[nodiscard]] RankProgram merge(std::size_t rank, RankProgram computes) const {
    RankProgram merged = std::move(computes);
    const std::vector<Instruction> runs = std::exchange(merged.instructions, {});
    const auto& ends = ends_[rank];
    merged.instructions.reserve(runs.size() + ends.size());
    merged.transfers.reserve(ends.size());
    auto end = ends.begin();
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const std::int64_t begin = timing_.begins[rank][k].count();
      for (; end != ends.end() && end->at <= begin; ++end) append(merged, rank, *end);
      merged.instructions.push_back(runs[k]);
    }
    for (; end != ends.end(); ++end) append(merged, rank, *end);
    return merged;
  }

 private:
  template <typename Visit>
  void for_each_output(const Instruction& run, Visit visit) const {
    std::uint32_t output = 0;
    for (const Op& op : {run.op, run.paired}) {
      if (op.kind == OpKind::none) continue;
      for (const Channels::Id id : channels_.outputs(op)) {
        if (channels_[id].crosses_ranks()) visit(id, op.microbatch, output++);
      }
    }
  }

  // Exact room for every rank's ends, so that large programs do not pay for growth.
  void count_ends() {
    std::vector<std::size_t> counts(program_.ranks.size());
    for (const RankProgram& rank : program_.ranks) {
      for (const Instruction& run : rank.instructions) {
        for_each_output(run, [&](Channels::Id id, Microbatch, std::uint32_t) {
          ++counts[static_cast<std::size_t>(channels_[id].source)];
          ++counts[static_cast<std::size_t>(channels_[id].destination)];
        });
      }
    }
    for (std::size_t rank = 0; rank < counts.size(); ++rank) ends_[rank].reserve(counts[rank]);
  }

  void place_outputs(std::size_t rank) {
    const auto& runs = program_.ranks[rank].instructions;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const Time duration = std::max(Time{1}, program_.kernels[runs[k].kernel].duration);
      PlacedTransfer placed{.at = (timing_.begins[rank][k] + duration).count(),
                            .source = static_cast<Rank>(rank),
                            .producer = static_cast<std::uint32_t>(k)};
      for_each_output(runs[k], [&](Channels::Id id, Microbatch microbatch, std::uint32_t output) {
        placed.channel = id;
        placed.microbatch = microbatch;
        placed.output = output;
        ends_[static_cast<std::size_t>(channels_[id].source)].push_back(placed);
        ends_[static_cast<std::size_t>(channels_[id].destination)].push_back(placed);
      });
    }
  }

  void append(RankProgram& rank, std::size_t number, const PlacedTransfer& placed) const {
    const Channels::Channel& channel = channels_[placed.channel];
    const bool send = channel.source == static_cast<Rank>(number);
    Transfer transfer;
    transfer.is_send = send;
    transfer.peer = static_cast<std::uint16_t>(send ? channel.destination : channel.source);
    transfer.payload = channel.payload(placed.microbatch);
    transfer.size = channel.size;
    Instruction instruction{.kind = InstructionKind::transfer};
    instruction.op =
        send ? channel.send_op(placed.microbatch) : channel.receive_op(placed.microbatch);
    instruction.body = {static_cast<std::uint32_t>(rank.transfers.size()), 1};
    rank.transfers.push_back(transfer);
    rank.instructions.push_back(instruction);
  }

  const Channels channels_;
  const Program& program_;
  Evaluation timing_;
  std::vector<std::vector<PlacedTransfer>> ends_;  // [rank]
};

}  // namespace

Program insert_transfers(const Problem& problem, Program program) {
  std::vector<RankProgram> merged;
  {
    const TransferPlacer placer(problem, program);
    merged.reserve(program.ranks.size());
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
      merged.push_back(placer.merge(rank, program.ranks[rank]));
    }
  }
  program.ranks = std::move(merged);
  return program;
}

}  // namespace counterflow

#pragma once

#include <utility>
#include <vector>

#include "executor/exchange.h"
#include "executor/meetings.h"
#include "executor/transport.h"

namespace counterflow::exec {

// All ranks in one process: whoever comes second copies the message from slot to slot, whoever
// comes last does the collective.
class LocalTransport final : public Transport {
 public:
  // Everything given must outlive it.
  LocalTransport(const Program& program, const Matching& matching, Semantics semantics,
                 std::vector<RankMemory>& memories, Posting posting = Posting::any_thread)
      : matching_(matching),
        exchange_(program, matching, semantics, memories, posting),
        meetings_(program, memories) {}

  void begin_step(int /*step*/, Listener& listener) override {
    listener_ = &listener;
    exchange_.clear();
    meetings_.clear();
  }

  void post(Matching::End end) override {
    Exchange::Outcome outcome = exchange_.post(end.rank, end.transfer);
    if (outcome.fault) {
      const Matching::End at = outcome.fault->at;
      return listener_->transfer_failed(at, std::move(outcome.fault->reason), at.rank);
    }
    if (outcome.other) listener_->transfer_ended(matching_.partner(end.rank, end.transfer));
    if (outcome.mine) listener_->transfer_ended(end);
  }

  void arrive(std::uint32_t rank, std::uint32_t instruction) override {
    Meetings::Outcome outcome = meetings_.arrive(rank, instruction);
    if (!outcome.fault.empty()) {
      return listener_->collective_failed(outcome.at.rank, outcome.at.instruction,
                                          std::move(outcome.fault), outcome.at.rank);
    }
    for (const Meetings::Member& each : outcome.ended) {
      listener_->collective_ended(each.rank, each.instruction);
    }
  }

 private:
  const Matching& matching_;
  Exchange exchange_;
  Meetings meetings_;
  Listener* listener_ = nullptr;
};

}  // namespace counterflow::exec

#pragma once

#include <string>
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
                 std::vector<RankMemory>& memories)
      : exchange_(program, matching, semantics, memories, Posting::any_thread),
        meetings_(program, memories) {}

  void begin_step(int /*step*/, Listener& listener) override {
    listener_ = &listener;
    meetings_.clear();
  }

  void post(Matching::End end) override {
    exchange_.post(exchange_.id(end.rank, end.transfer), *this);
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

  // What the exchange tells.
  void transfer_ended(const Exchange::End& end) {
    listener_->transfer_ended({end.rank, exchange_.transfer(end)});
  }
  void transfer_failed(const Exchange::End& end, std::string reason) {
    listener_->transfer_failed({end.rank, exchange_.transfer(end)}, std::move(reason), end.rank);
  }

 private:
  Exchange exchange_;
  Meetings meetings_;
  Listener* listener_ = nullptr;
};

}  // namespace counterflow::exec

#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "executor/transport.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// A transport that allows no more than the machine it stands for. gloo and shared memory take
// messages in any order and keep what nobody asked for; NCCL does not: a program that leans on the
// former hangs on the latter. Refuses, at the instruction that does it: a message posted before the
// one ahead of it on its channel, a collective before the one ahead of it on its communicator;
// under a model of serial communicators a group or collective posted while another one of the same
// communicator is under way on its rank; a group that NCCL may cut (more than eight transfers, or
// two to one peer and direction).
class StrictTransport final : public Transport, private Transport::Listener {
 public:
  // Everything given must outlive it.
  StrictTransport(const Program& program, const Matching& matching, const ExecutionModel& execution,
                  Transport& inner);

  void begin_step(int step, Transport::Listener& listener) override;
  void post(Matching::End end) override;
  void arrive(std::uint32_t rank, std::uint32_t instruction) override;

 private:
  // (rank, communicator, peer, is_send): the next number on it.
  using Channel = std::tuple<std::uint32_t, CommunicatorId, std::uint16_t, bool>;
  // The group or collective that a communicator is busy with on a rank, and how many of its ends
  // are left.
  struct Busy {
    std::uint32_t instruction = kNone;
    std::uint32_t ends_left = 0;
  };

  void transfer_ended(Matching::End end) override;
  void transfer_failed(Matching::End end, std::string reason, std::uint32_t culprit) override;
  void collective_ended(std::uint32_t rank, std::uint32_t instruction) override;
  void collective_failed(std::uint32_t rank, std::uint32_t instruction, std::string reason,
                         std::uint32_t culprit) override;
  [[nodiscard]] std::string broken_rule(std::uint32_t rank, std::uint32_t instruction);
  [[nodiscard]] std::string busy_rule(std::uint32_t rank, std::uint32_t instruction) const;
  void one_end(std::uint32_t rank, std::uint32_t instruction);
  [[nodiscard]] std::string broken_rule(Matching::End end);
  [[nodiscard]] std::string group_rule(const RankProgram& rank, const Instruction& group) const;

  const Program& program_;
  const Matching& matching_;
  const bool serial_;
  const bool cuts_groups_;
  Transport& inner_;
  Transport::Listener* listener_ = nullptr;
  std::mutex mutex_;
  std::map<Channel, std::uint32_t> next_;
  std::map<std::pair<std::uint32_t, CommunicatorId>, std::uint32_t> next_collective_;
  std::map<std::pair<std::uint32_t, CommunicatorId>, Busy> busy_;
};

}  // namespace counterflow::exec

#include "executor/strict_transport.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "executor/progress.h"
#include "scheduler/ir/instruction_text.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow::exec {
namespace {

constexpr std::uint32_t kMostInGroup = 8;

}  // namespace

StrictTransport::StrictTransport(const Program& program, const Matching& matching,
                                 const ExecutionModel& execution, Transport& inner)
    : program_(program),
      matching_(matching),
      serial_(execution.serial_communicators),
      cuts_groups_(execution.serial_communicators),
      inner_(inner) {}

void StrictTransport::begin_step(int step, Transport::Listener& listener) {
  {
    const std::scoped_lock lock(mutex_);
    listener_ = &listener;
    next_.clear();
    next_collective_.clear();
    busy_.clear();
  }
  inner_.begin_step(step, *this);
}

void StrictTransport::post(Matching::End end) {
  std::string fault;
  {
    const std::scoped_lock lock(mutex_);
    fault = broken_rule(end);
  }
  if (!fault.empty()) return listener_->transfer_failed(end, std::move(fault), end.rank);
  inner_.post(end);
}

std::string StrictTransport::broken_rule(Matching::End end) {
  const RankProgram& rank = program_.ranks[end.rank];
  const std::uint32_t instruction = matching_.instruction(end.rank, end.transfer);
  const Instruction& group = rank.instructions[instruction];
  const Transfer& what = rank.transfers[end.transfer];
  std::uint32_t& next = next_[{end.rank, group.communicator, what.peer, what.is_send}];
  const std::uint32_t number = matching_.sequence(end.rank, end.transfer);
  if (number != next) {
    return fmt::format("{} is message {} of its channel with rank {}, and message {} is not posted",
                       to_string(group.op), number, what.peer, next);
  }
  ++next;
  if (std::string fault = busy_rule(end.rank, instruction); !fault.empty()) return fault;
  Busy& busy = busy_[{end.rank, group.communicator}];
  if (busy.instruction == instruction && busy.ends_left > 0) return {};
  busy = {instruction, group.body.count};
  return cuts_groups_ ? group_rule(rank, group) : std::string();
}

std::string StrictTransport::broken_rule(std::uint32_t rank, std::uint32_t instruction) {
  const RankProgram& list = program_.ranks[rank];
  const Instruction& what = list.instructions[instruction];
  const Collective& collective = list.collectives[what.body.first];
  std::uint32_t& next = next_collective_[{rank, what.communicator}];
  if (collective.sequence != next) {
    return fmt::format("{} begins before collective {}", called(list, what), next);
  }
  ++next;
  std::string fault = busy_rule(rank, instruction);
  if (fault.empty()) busy_[{rank, what.communicator}] = {instruction, 1};
  return fault;
}

// One thing at a time on a communicator, where that is a rule.
std::string StrictTransport::busy_rule(std::uint32_t rank, std::uint32_t instruction) const {
  const RankProgram& list = program_.ranks[rank];
  const Instruction& what = list.instructions[instruction];
  const auto found = busy_.find({rank, what.communicator});
  if (!serial_ || found == busy_.end()) return {};
  const Busy& busy = found->second;
  if (busy.ends_left == 0 || busy.instruction == instruction) return {};
  return fmt::format("{} begins while {} is under way on communicator {}", called(list, what),
                     called(list, list.instructions[busy.instruction]), what.communicator);
}

std::string StrictTransport::group_rule(const RankProgram& rank, const Instruction& group) const {
  if (group.body.count > kMostInGroup) {
    return fmt::format("{} is a group of {} transfers; NCCL keeps eight together",
                       to_string(group.op), group.body.count);
  }
  std::set<std::pair<std::uint16_t, bool>> seen;
  for (const Transfer& each : rank.transfers_of(group)) {
    if (seen.insert({each.peer, each.is_send}).second) continue;
    return fmt::format("{} is a group with two transfers {} rank {}; NCCL may cut it",
                       to_string(group.op), each.is_send ? "to" : "from", each.peer);
  }
  return {};
}

void StrictTransport::transfer_ended(Matching::End end) {
  one_end(end.rank, matching_.instruction(end.rank, end.transfer));
  listener_->transfer_ended(end);
}

void StrictTransport::one_end(std::uint32_t rank, std::uint32_t instruction) {
  const std::scoped_lock lock(mutex_);
  const CommunicatorId id = program_.ranks[rank].instructions[instruction].communicator;
  Busy& busy = busy_[{rank, id}];
  if (busy.instruction == instruction && busy.ends_left > 0) --busy.ends_left;
}

void StrictTransport::transfer_failed(Matching::End end, std::string reason,
                                      std::uint32_t culprit) {
  listener_->transfer_failed(end, std::move(reason), culprit);
}

void StrictTransport::arrive(std::uint32_t rank, std::uint32_t instruction) {
  std::string fault;
  {
    const std::scoped_lock lock(mutex_);
    fault = broken_rule(rank, instruction);
  }
  if (!fault.empty()) {
    return listener_->collective_failed(rank, instruction, std::move(fault), rank);
  }
  inner_.arrive(rank, instruction);
}

void StrictTransport::collective_ended(std::uint32_t rank, std::uint32_t instruction) {
  one_end(rank, instruction);
  listener_->collective_ended(rank, instruction);
}

void StrictTransport::collective_failed(std::uint32_t rank, std::uint32_t instruction,
                                        std::string reason, std::uint32_t culprit) {
  listener_->collective_failed(rank, instruction, std::move(reason), culprit);
}

}  // namespace counterflow::exec

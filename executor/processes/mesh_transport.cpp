#include "executor/processes/mesh_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "executor/codec.h"
#include "executor/progress.h"

namespace counterflow::exec {

MeshTransport::MeshTransport(const Program& program, const Matching& matching, Semantics semantics,
                             RankMemory& memory, Mesh& mesh)
    : program_(program),
      matching_(matching),
      buffered_(semantics == Semantics::buffered),
      memory_(memory),
      mesh_(mesh),
      rank_(static_cast<std::uint32_t>(mesh.rank())),
      collectives_(program, memory, mesh),
      messages_(program.ranks[rank_].transfers.size()) {
  for (std::uint32_t k = 0; k < messages_.size(); ++k) {
    const Transfer& each = transfer(k);
    auto& table = each.is_send ? sends_ : receives_;
    table[{each.peer, communicator(k), matching.sequence(rank_, k)}] = k;
  }
}

std::uint16_t MeshTransport::communicator(std::uint32_t k) const {
  return program_.ranks[rank_].instructions[matching_.instruction(rank_, k)].communicator;
}

std::span<std::byte> MeshTransport::bytes_of(std::uint32_t k) {
  const std::uint32_t slot = transfer(k).slot;
  return slot == kNone ? std::span<std::byte>() : memory_.buffer(slot);
}

void MeshTransport::begin_step(int step, Listener& listener) {
  collectives_.begin_step(step, listener);
  const std::scoped_lock lock(mutex_);
  if (step_ == step) return;
  step_ = step;
  listener_ = &listener;
  messages_.assign(messages_.size(), Message{});
}

// The slot holds, or takes, the version that the transfer names; else what is wrong.
std::string MeshTransport::use(std::uint32_t k) {
  const Transfer& what = transfer(k);
  if (what.slot == kNone) return {};
  const Access access{
      .slot = what.slot, .version = what.version & 0x7fffffffU, .is_write = what.is_send ? 0U : 1U};
  if (memory_.use(access)) return {};
  return fmt::format("rank {} {} {}: {}", rank_, what.is_send ? "sends" : "receives",
                     describe(what.payload), memory_.complaint(access));
}

void MeshTransport::post(Matching::End end) {
  const std::uint32_t k = end.transfer;
  const Transfer& what = transfer(k);
  Frame arrived;
  std::vector<std::byte> kept;
  bool send_now = false;
  bool take_now = false;
  {
    const std::scoped_lock lock(mutex_);
    Message& message = messages_[k];
    message.posted = true;
    send_now = what.is_send && (buffered_ || message.ready);
    take_now = !what.is_send && message.here;
    if (take_now) {
      arrived = message.frame;
      kept = std::move(message.kept);
    }
  }
  if (take_now) {
    arrive(k, arrived, kept);
  } else if (send_now) {
    send(k);
  } else if (!what.is_send && !buffered_) {
    const Frame frame{.kind = FrameKind::ready,
                      .step = step_,
                      .communicator = communicator(k),
                      .sequence = matching_.sequence(rank_, k)};
    mesh_.send(what.peer, frame, {});
  }
}

void MeshTransport::arrive(std::uint32_t /*rank*/, std::uint32_t instruction) {
  collectives_.arrive(instruction);
}

void MeshTransport::received_ready(int peer, const Frame& frame) {
  const auto found =
      sends_.find({static_cast<std::uint32_t>(peer), frame.communicator, frame.sequence});
  if (found == sends_.end()) return;  // it waits for what nobody sends
  bool now = false;
  {
    const std::scoped_lock lock(mutex_);
    Message& message = messages_[found->second];
    message.ready = true;
    now = message.posted && !buffered_;
  }
  if (now) send(found->second);
}

void MeshTransport::send(std::uint32_t k) {
  const Transfer& what = transfer(k);
  if (std::string fault = use(k); !fault.empty()) {
    return listener_->transfer_failed({rank_, k}, std::move(fault), rank_);
  }
  std::vector<std::byte> packed;
  const std::span<const std::byte> body = leaving(what, bytes_of(k), packed);
  const Frame frame{.kind = FrameKind::data,
                    .step = step_,
                    .communicator = communicator(k),
                    .type = what.type,
                    .sequence = matching_.sequence(rank_, k),
                    .payload = what.payload,
                    .version = what.version,
                    .declared = static_cast<std::uint64_t>(what.size.value),
                    .size = body.size(),
                    .checksum = checksum(body)};
  if (buffered_) {
    mesh_.send(what.peer, frame, {body.begin(), body.end()});
    listener_->transfer_ended({rank_, k});
  } else {
    keep(k, std::move(packed));
    mesh_.send(what.peer, frame, body, [this, k] {
      keep(k, {});
      listener_->transfer_ended({rank_, k});
    });
  }
}

void MeshTransport::keep(std::uint32_t k, std::vector<std::byte> bytes) {
  if (!is_packed(transfer(k).type)) return;
  const std::scoped_lock lock(mutex_);
  messages_[k].kept.swap(bytes);
}

std::string MeshTransport::mismatch(std::uint32_t k, const Frame& frame,
                                    std::span<const std::byte> body) const {
  const Transfer& what = transfer(k);
  if (frame.payload != what.payload) {
    return fmt::format("rank {} sends {}, rank {} receives {}", what.peer, describe(frame.payload),
                       rank_, describe(what.payload));
  }
  if (frame.declared != static_cast<std::uint64_t>(what.size.value) || frame.type != what.type) {
    return fmt::format("{}: rank {} sends {} B of {}, rank {} receives {} B of {}",
                       describe(what.payload), what.peer, frame.declared, name(frame.type), rank_,
                       what.size.value, name(what.type));
  }
  if (frame.checksum != checksum(body)) {
    return fmt::format("{} of rank {} arrives with other bytes than it left with",
                       describe(what.payload), what.peer);
  }
  return {};
}

std::span<std::byte> MeshTransport::room(int peer, const Frame& frame) {
  const auto found =
      receives_.find({static_cast<std::uint32_t>(peer), frame.communicator, frame.sequence});
  if (found == receives_.end() || frame.step != step_) return {};
  const std::uint32_t k = found->second;
  const std::scoped_lock lock(mutex_);
  const Message& message = messages_[k];
  const std::span<std::byte> bytes = bytes_of(k);
  const bool fits = !is_packed(transfer(k).type) && frame.size == bytes.size() &&
                    frame.payload == transfer(k).payload;
  return message.posted && !message.over && fits ? bytes : std::span<std::byte>();
}

void MeshTransport::received_data(int peer, const Frame& frame, std::span<const std::byte> body) {
  const auto found =
      receives_.find({static_cast<std::uint32_t>(peer), frame.communicator, frame.sequence});
  if (found == receives_.end()) return stray(peer, frame, "that nobody receives");
  const std::uint32_t k = found->second;
  bool again = false;
  bool now = false;
  {
    const std::scoped_lock lock(mutex_);
    Message& message = messages_[k];
    again = message.here || frame.step != step_;
    now = message.posted;
    message.here = true;
    if (!again && !now) {
      message.frame = frame;
      message.kept.assign(body.begin(), body.end());
    }
  }
  if (again) return stray(peer, frame, "for the second time");
  if (!buffered_ && !now) return stray(peer, frame, "before it is asked for");
  if (now) arrive(k, frame, body);
}

void MeshTransport::stray(int peer, const Frame& frame, const char* what) {
  const auto open = std::ranges::find_if(receives_, [&](const auto& entry) {
    return entry.first.peer == static_cast<std::uint32_t>(peer) &&
           entry.first.communicator == frame.communicator && entry.first.sequence >= frame.sequence;
  });
  std::uint32_t k = 0;
  if (open != receives_.end()) {
    k = open->second;
  } else if (!receives_.empty()) {
    k = receives_.begin()->second;
  }
  if (messages_.empty() || listener_ == nullptr) return;
  listener_->transfer_failed(
      {rank_, k}, fmt::format("rank {} sends {} {}", peer, describe(frame.payload), what),
      static_cast<std::uint32_t>(peer));
}

void MeshTransport::arrive(std::uint32_t k, const Frame& frame, std::span<const std::byte> body) {
  std::string fault = mismatch(k, frame, body);
  const std::uint32_t culprit = fault.empty() ? rank_ : transfer(k).peer;
  if (fault.empty()) fault = use(k);
  if (!fault.empty()) return listener_->transfer_failed({rank_, k}, std::move(fault), culprit);
  arriving(transfer(k), body, bytes_of(k));
  {
    const std::scoped_lock lock(mutex_);
    messages_[k].over = true;
  }
  listener_->transfer_ended({rank_, k});
}

}  // namespace counterflow::exec

#include "scheduler/graph/matching.h"

#include <fmt/format.h>

#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

std::string text(const Payload& payload) {
  return fmt::format("the {} of microbatch {} from stage {} to stage {}", name(payload.kind),
                     payload.microbatch, payload.from, payload.to);
}

// Counts the sends and receives of every message the stage graph asks for.
class MessageCensus {
 public:
  MessageCensus(const Problem& problem, const Channels& channels)
      : problem_(problem),
        channels_(channels),
        sends_(channels.size() * static_cast<std::size_t>(problem.microbatches)),
        receives_(sends_.size()) {}

  // Counts a transfer; returns what is wrong with it, empty if nothing.
  std::string count(Rank rank, const Transfer& transfer) {
    const auto id = channels_.find(transfer.payload);
    if (!id) {
      return fmt::format("stage {} has no {} to exchange with another stage here",
                         transfer.is_send ? transfer.payload.from : transfer.payload.to,
                         name(transfer.payload.kind));
    }
    const Channels::Channel& channel = channels_[*id];
    if (!is_asked_for(channel, transfer.payload.microbatch)) {
      return fmt::format("microbatch {} has no backward, so no gradient to exchange",
                         transfer.payload.microbatch);
    }
    if (!channel.crosses_ranks()) {
      return fmt::format("stages {} and {} share rank {}; nothing is sent between them",
                         channel.from, channel.to, rank);
    }
    const Rank here = transfer.is_send ? channel.source : channel.destination;
    const Rank there = transfer.is_send ? channel.destination : channel.source;
    if (rank != here || transfer.peer != there) {
      return fmt::format("{} goes from rank {} to rank {}, not {} {}", text(transfer.payload),
                         channel.source, channel.destination, transfer.is_send ? "to" : "from",
                         transfer.peer);
    }
    std::uint8_t& seen =
        (transfer.is_send ? sends_ : receives_)[cell(*id, transfer.payload.microbatch)];
    if (seen > 0) return "stands in the program more than once";
    ++seen;
    return "";
  }

  // Messages that nobody sends or nobody receives.
  void report_missing(Diagnostics& out) const {
    for (Channels::Id id = 0; id < channels_.size(); ++id) {
      const Channels::Channel& channel = channels_[id];
      if (!channel.crosses_ranks()) continue;
      for (Microbatch mb = 0; mb < problem_.microbatches; ++mb) {
        if (problem_.replica_of(mb) != channel.replica || !is_asked_for(channel, mb)) continue;
        const bool sent = sends_[cell(id, mb)] > 0;
        const bool received = receives_[cell(id, mb)] > 0;
        if (!sent) report(channel, mb, true, received, out);
        if (!received) report(channel, mb, false, sent, out);
      }
    }
  }

 private:
  [[nodiscard]] std::size_t cell(Channels::Id id, Microbatch microbatch) const {
    return id * static_cast<std::size_t>(problem_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }

  // Only what is trained sends gradients back.
  [[nodiscard]] bool is_asked_for(const Channels::Channel& channel, Microbatch microbatch) const {
    return channel.kind == PayloadKind::activation || problem_.trains(microbatch);
  }

  static void report(const Channels::Channel& channel, Microbatch microbatch, bool send,
                     bool other_end, Diagnostics& out) {
    const Op missing = send ? channel.send_op(microbatch) : channel.receive_op(microbatch);
    const Op present = send ? channel.receive_op(microbatch) : channel.send_op(microbatch);
    const Rank here = send ? channel.source : channel.destination;
    const Rank there = send ? channel.destination : channel.source;
    std::string message =
        other_end ? fmt::format("is missing: rank {} {} has no {}", there, to_string(present),
                                send ? "sender" : "receiver")
                  : fmt::format("is missing, and so is {} on rank {}", to_string(present), there);
    out.push_back({.rule = "matching",
                   .rank = here,
                   .index = std::nullopt,
                   .op = missing,
                   .message = std::move(message)});
  }

  const Problem& problem_;
  const Channels& channels_;
  std::vector<std::uint8_t> sends_, receives_;  // [channel][microbatch]
};

// The two ends that meet must mean the same message.
std::string mismatch(const Transfer& send, const Transfer& receive, std::uint32_t there) {
  if (send.payload != receive.payload) {
    return fmt::format("sends {}, but the receive it meets on rank {} expects {}",
                       text(send.payload), there, text(receive.payload));
  }
  if (send.size != receive.size || send.type != receive.type) {
    return fmt::format("sends {} B as {}, but rank {} expects {} B as {}", send.size.value,
                       name(send.type), there, receive.size.value, name(receive.type));
  }
  return "";
}

// `census`: of the messages that a problem asks for; none: whatever is sent is well.
void check_matching(const Program& program, const References& references, MessageCensus* census,
                    Diagnostics& out) {
  const Matching& meets = references.meets;
  std::vector<Matching::End> unmet;
  const auto report = [&](const char* rule, Matching::End end, std::string message) {
    if (message.empty()) return;
    const std::uint32_t index = meets.instruction(end.rank, end.transfer);
    const RankProgram& list = program.ranks[end.rank];
    out.push_back({.rule = rule,
                   .rank = static_cast<Rank>(end.rank),
                   .index = index,
                   .op = op_of(list.instructions[index], list.transfers[end.transfer]),
                   .message = std::move(message)});
  };
  for (std::uint32_t rank = 0; rank < program.ranks.size(); ++rank) {
    const RankProgram& list = program.ranks[rank];
    for (std::uint32_t t = 0; t < list.transfers.size(); ++t) {
      const Transfer& transfer = list.transfers[t];
      const Matching::End here{rank, t};
      const Matching::End there = meets.partner(rank, t);
      std::string senseless =
          census == nullptr ? "" : census->count(static_cast<Rank>(rank), transfer);
      if (senseless.empty() && !there.exists()) unmet.push_back(here);
      if (transfer.is_send && there.exists()) {
        const Transfer& receive = program.ranks[there.rank].transfers[there.transfer];
        if (transfer.payload.kind != receive.payload.kind) {
          crossing(program, references, here, out);
        } else if (senseless.empty()) {
          report("payload", here, mismatch(transfer, receive, there.rank));
        }
      }
      report("matching", here, std::move(senseless));
      if (transfer.sequence != meets.sequence(rank, t)) {
        report("matching", here,
               fmt::format("is message {} of its channel by its place, but numbered {}",
                           meets.sequence(rank, t), transfer.sequence));
      }
    }
  }
  const std::size_t before = out.size();
  if (census != nullptr) census->report_missing(out);
  // A missing end leaves over whatever stands last on its channel, which is no fault of that.
  if (out.size() > before) return;
  for (const Matching::End& end : unmet) {
    const Transfer& transfer = program.ranks[end.rank].transfers[end.transfer];
    report("matching", end,
           fmt::format("meets no {}: its channel has none left for it on rank {}",
                       transfer.is_send ? "receive" : "send", transfer.peer));
  }
}

}  // namespace

void matching(const Program& program, const References& references, Diagnostics& out) {
  check_matching(program, references, nullptr, out);
}

void matching(const Problem& problem, const Program& program, const References& references,
              Diagnostics& out) {
  const Channels channels(problem);
  MessageCensus census(problem, channels);
  check_matching(program, references, &census, out);
}

}  // namespace counterflow::rules

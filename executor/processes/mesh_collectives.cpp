#include "executor/processes/mesh_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/collectives.h"
#include "scheduler/graph/collective_groups.h"
#include "scheduler/ir/instruction_text.h"

namespace counterflow::exec {
namespace {

const char* text(FrameKind kind) {
  return kind == FrameKind::sum ? "part of the sum" : "share";
}

void copy(std::span<const std::byte> from, Buffer to) {
  const std::size_t size = std::min(from.size(), to.size());
  if (size > 0) std::memcpy(to.data(), from.data(), size);
}

}  // namespace

MeshCollectives::MeshCollectives(const Program& program, RankMemory& memory, Mesh& mesh)
    : memory_(memory), mesh_(mesh), rank_(static_cast<std::uint32_t>(mesh.rank())) {
  std::map<CommunicatorId, std::uint32_t> numbers;
  const RankProgram& mine = program.ranks[rank_];
  for (const CollectiveGroup& group : collective_groups(program)) {
    const auto me = std::ranges::find(group.members, rank_, &CollectiveGroup::Member::rank);
    if (me == group.members.end()) continue;
    const Instruction& instruction = mine.instructions[me->instruction];
    Call call{.instruction = me->instruction,
              .what = mine.collectives[instruction.body.first],
              .communicator = instruction.communicator,
              .number = numbers[instruction.communicator]++,
              .me = static_cast<std::size_t>(me - group.members.begin()),
              .possible = group.possible};
    for (const CollectiveGroup::Member& member : group.members) call.members.push_back(member.rank);
    places_[{call.communicator, call.number}] = calls_.size();
    of_instruction_[call.instruction] = calls_.size();
    calls_.push_back(std::move(call));
  }
}

void MeshCollectives::begin_step(int step, Transport::Listener& listener) {
  const std::scoped_lock lock(mutex_);
  if (step_ == step) return;
  step_ = step;
  listener_ = &listener;
  for (Call& call : calls_) {
    const std::size_t n = call.members.size();
    call.begun = call.over = false;
    call.shares.assign(n, {});
    call.has_share.assign(n, false);
    call.has_sum.assign(n, false);
    call.shares_left = n - 1;
    call.sums_left = call.what.kind == CollectiveKind::all_reduce ? n : 0;
  }
}

Buffer MeshCollectives::data(const Call& call) {
  if (call.what.slot == kNone) return {};
  return memory_.buffer(call.what.slot).first(static_cast<std::size_t>(call.what.size.value));
}

// The slot takes the version that the collective names; else what is wrong.
std::string MeshCollectives::use(const Call& call) {
  if (call.what.slot == kNone) return {};
  const Access access{
      .slot = call.what.slot, .version = call.what.version & 0x7fffffffU, .is_write = 1};
  return memory_.use(access) ? std::string() : memory_.complaint(access);
}

// ---- What is sent ---------------------------------------------------------------------------

void MeshCollectives::arrive(std::uint32_t instruction) {
  Call& call = calls_[of_instruction_.at(instruction)];
  if (!call.possible) return;
  if (std::string fault = use(call); !fault.empty()) return fail(call, std::move(fault), rank_);
  // Copies: what others send may take their place before they have all left.
  std::vector<Message> shares = shares_of(call);
  bool all_here = false;
  {
    // Whoever answers one finds that this has begun.
    const std::scoped_lock lock(mutex_);
    call.begun = true;
    for (Message& share : shares) mesh_.send(share.peer, share.frame, std::move(share.body));
    all_here = call.shares_left == 0;
  }
  if (all_here) work(call);
}

std::vector<MeshCollectives::Message> MeshCollectives::shares_of(const Call& call) {
  std::vector<Message> messages;
  const Buffer whole = data(call);
  const std::size_t n = call.members.size();
  for (std::size_t to = 0; to < n; ++to) {
    if (to == call.me) continue;
    Buffer share;
    switch (call.what.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_to_all:
        share = part(whole, to, n);
        break;
      case CollectiveKind::all_gather:
        share = part(whole, call.me, n);
        break;
      case CollectiveKind::broadcast:
        if (call.me == 0) share = whole;
        break;
      case CollectiveKind::barrier:
        break;
    }
    messages.push_back(message(call, FrameKind::share, to, share));
  }
  return messages;
}

MeshCollectives::Message MeshCollectives::message(const Call& call, FrameKind kind, std::size_t to,
                                                  Buffer bytes) const {
  const Frame frame{.kind = kind,
                    .step = step_,
                    .communicator = call.communicator,
                    .collective = call.what.kind,
                    .sequence = call.number,
                    .version = call.what.version,
                    .declared = static_cast<std::uint64_t>(call.what.size.value),
                    .size = bytes.size(),
                    .checksum = checksum(bytes)};
  return {static_cast<int>(call.members[to]), frame, {bytes.begin(), bytes.end()}};
}

// ---- What is done, once all shares are here -------------------------------------------------

void MeshCollectives::work(Call& call) {
  const Buffer whole = data(call);
  const std::size_t n = call.members.size();
  switch (call.what.kind) {
    case CollectiveKind::all_reduce:
      add_up(call);
      for (std::size_t to = 0; to < n; ++to) {
        if (to == call.me) continue;
        Message sum = message(call, FrameKind::sum, to, part(whole, call.me, n));
        mesh_.send(sum.peer, sum.frame, std::move(sum.body));
      }
      return sum_arrived(call, call.me);
    case CollectiveKind::reduce_scatter:
      add_up(call);
      break;
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      for (std::size_t k = 0; k < n; ++k) copy(call.shares[k], part(whole, k, n));
      break;
    case CollectiveKind::broadcast:
      copy(call.shares.front(), whole);
      break;
    case CollectiveKind::barrier:
      break;
  }
  end(call);
}

// Makes this rank's part of the sum.
void MeshCollectives::add_up(Call& call) {
  const Buffer mine = part(data(call), call.me, call.members.size());
  call.shares[call.me].assign(mine.begin(), mine.end());
  std::vector<std::byte> sum = std::move(call.shares.front());
  for (std::size_t k = 1; k < call.shares.size(); ++k) add(sum, call.shares[k]);
  copy(sum, mine);
}

void MeshCollectives::sum_arrived(Call& call, std::size_t from) {
  bool all_here = false;
  {
    const std::scoped_lock lock(mutex_);
    call.has_sum[from] = true;
    all_here = --call.sums_left == 0;
  }
  if (all_here) end(call);
}

void MeshCollectives::end(Call& call) {
  {
    const std::scoped_lock lock(mutex_);
    call.over = true;
    call.shares.clear();
  }
  listener_->collective_ended(rank_, call.instruction);
}

// ---- What arrives ---------------------------------------------------------------------------

void MeshCollectives::received(int peer, const Frame& frame, std::span<const std::byte> body) {
  const auto culprit = static_cast<std::uint32_t>(peer);
  Call* const found = nearest(frame);
  if (found == nullptr) return;  // no collective here could tell of it
  Call& call = *found;
  const auto member = std::ranges::find(call.members, culprit);
  const auto from = static_cast<std::size_t>(member - call.members.begin());
  std::string fault;
  bool all_here = false;
  {
    const std::scoped_lock lock(mutex_);
    fault = member == call.members.end() ? "that nobody waits for" : misplaced(call, from, frame);
    if (!fault.empty()) {
      fault = fmt::format("rank {} sends its {} of {} {}", peer, text(frame.kind),
                          called(call.what, frame.sequence, frame.communicator), fault);
    } else {
      fault = mismatch(call, from, frame, body);
    }
    if (fault.empty() && frame.kind == FrameKind::share) {
      call.shares[from].assign(body.begin(), body.end());
      call.has_share[from] = true;
      all_here = --call.shares_left == 0 && call.begun;
    }
  }
  if (!fault.empty()) return fail(call, std::move(fault), culprit);
  if (frame.kind == FrameKind::sum) {
    copy(body, part(data(call), from, call.members.size()));
    sum_arrived(call, from);
  } else if (all_here) {
    work(call);
  }
}

MeshCollectives::Call* MeshCollectives::nearest(const Frame& frame) {
  auto at = places_.lower_bound({frame.communicator, frame.sequence});
  const bool is_past = at == places_.end() || at->first.first != frame.communicator;
  if (is_past && at != places_.begin()) --at;
  return at == places_.end() ? nullptr : &calls_[at->second];
}

// On each communicator the shares of a rank come in the order of its collectives.
bool MeshCollectives::is_in_turn(const Call& call, std::uint32_t peer) const {
  if (call.number == 0) return true;
  const Call& before = calls_[places_.at({call.communicator, call.number - 1})];
  const auto member = std::ranges::find(before.members, peer);
  return member == before.members.end() ||
         before.has_share[static_cast<std::size_t>(member - before.members.begin())];
}

std::string MeshCollectives::misplaced(const Call& call, std::size_t from,
                                       const Frame& frame) const {
  const bool is_share = frame.kind == FrameKind::share;
  if (frame.communicator != call.communicator || frame.sequence != call.number) {
    return "that nobody waits for";
  }
  if (frame.step != step_ || (is_share ? call.has_share[from] : call.has_sum[from])) {
    return "for the second time";
  }
  if (is_share && !is_in_turn(call, call.members[from])) return "before that of the one ahead";
  if (!is_share && call.sums_left == 0) return "that nobody waits for";
  if (!is_share && !call.begun) return "before it can know it";
  return {};
}

std::size_t MeshCollectives::size_of_share(const Call& call, std::size_t from, std::size_t to) {
  const Buffer whole = data(call);
  switch (call.what.kind) {
    case CollectiveKind::all_gather:
      return part(whole, from, call.members.size()).size();
    case CollectiveKind::broadcast:
      return from == 0 ? whole.size() : 0;
    case CollectiveKind::barrier:
      return 0;
    default:
      return part(whole, to, call.members.size()).size();
  }
}

std::string MeshCollectives::mismatch(const Call& call, std::size_t from, const Frame& frame,
                                      std::span<const std::byte> body) {
  const std::string what = called(call.what, call.number, call.communicator);
  const std::uint32_t peer = call.members[from];
  if (frame.collective != call.what.kind) {
    return fmt::format("rank {} is at {}, rank {} at a {}", rank_, what, peer,
                       name(frame.collective));
  }
  const auto declared = static_cast<std::uint64_t>(call.what.size.value);
  if (frame.declared != declared) {
    return fmt::format("{}: rank {} brings {} B of it, rank {} {} B", what, peer, frame.declared,
                       rank_, declared);
  }
  const std::size_t expected = frame.kind == FrameKind::sum
                                   ? part(data(call), from, call.members.size()).size()
                                   : size_of_share(call, from, call.me);
  if (body.size() != expected) {
    return fmt::format("{}: the {} of rank {} has {} B of {} B", what, text(frame.kind), peer,
                       body.size(), expected);
  }
  if (frame.checksum != checksum(body)) {
    return fmt::format("the {} of rank {} in {} arrives with other bytes than it left with",
                       text(frame.kind), peer, what);
  }
  return {};
}

void MeshCollectives::fail(const Call& call, std::string reason, std::uint32_t culprit) {
  listener_->collective_failed(rank_, call.instruction, std::move(reason), culprit);
}

std::optional<Lack> MeshCollectives::lacks(std::uint32_t instruction) const {
  const auto found = of_instruction_.find(instruction);
  if (found == of_instruction_.end()) return std::nullopt;
  const Call& call = calls_[found->second];
  const std::scoped_lock lock(mutex_);
  if (!call.begun || call.over) return std::nullopt;
  const bool is_sum = call.shares_left == 0;
  if (is_sum && (call.sums_left == 0 || !call.has_sum[call.me])) return std::nullopt;  // at work
  const std::vector<bool>& has = is_sum ? call.has_sum : call.has_share;
  for (std::size_t k = 0; k < has.size(); ++k) {
    if (k != call.me && !has[k]) return Lack{call.members[k], is_sum};
  }
  return std::nullopt;
}

}  // namespace counterflow::exec

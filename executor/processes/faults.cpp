#include "executor/processes/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <thread>
#include <utility>

#include "scheduler/error.h"

namespace counterflow::exec {
namespace {

constexpr int kSlowdown = 100;

constexpr std::array<std::pair<std::string_view, FaultKind>, 8> kNames = {{
    {"kill", FaultKind::kill},
    {"stall", FaultKind::stall},
    {"slow", FaultKind::slow},
    {"drop", FaultKind::drop},
    {"duplicate", FaultKind::duplicate},
    {"reorder", FaultKind::reorder},
    {"corrupt", FaultKind::corrupt},
    {"size", FaultKind::size},
}};

bool is_of_rank(FaultKind kind) {
  return kind == FaultKind::kill || kind == FaultKind::stall || kind == FaultKind::slow;
}

bool is_message(const Frame& frame) {
  return frame.kind == FrameKind::data || frame.kind == FrameKind::share ||
         frame.kind == FrameKind::sum;
}

template <typename T>
bool read_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

std::map<std::uint32_t, FaultKind> of_rank(const std::vector<Fault>& faults, Rank rank, bool ops) {
  std::map<std::uint32_t, FaultKind> mine;
  for (const Fault& fault : faults) {
    if (fault.rank == rank && is_of_rank(fault.kind) == ops) mine[fault.at] = fault.kind;
  }
  return mine;
}

}  // namespace

Fault parse_fault(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::size_t colon = text.find(':');
  Fault fault;
  const auto known =
      std::ranges::find(kNames, text.substr(0, at), [](const auto& entry) { return entry.first; });
  const bool formed = at != std::string_view::npos && colon != std::string_view::npos && at < colon;
  if (known != kNames.end() && formed &&
      read_number(text.substr(at + 1, colon - at - 1), fault.rank) &&
      read_number(text.substr(colon + 1), fault.at)) {
    fault.kind = known->second;
    return fault;
  }
  throw InputError(
      fmt::format("'{}' is no fault; write kind@rank:n, for example drop@2:5, with kill, stall or "
                  "slow at the n-th op of a rank, drop, duplicate, reorder, corrupt or size at the "
                  "n-th message that it sends",
                  text));
}

FaultyCompute::FaultyCompute(Compute& inner, const std::vector<Fault>& faults, Rank rank)
    : inner_(inner), faults_(of_rank(faults, rank, true)) {}

void FaultyCompute::run(const ComputeCall& call) {
  const auto found = faults_.find(ops_.fetch_add(1));
  if (found != faults_.end()) {
    if (found->second == FaultKind::kill) std::raise(SIGKILL);
    while (found->second == FaultKind::stall) std::this_thread::sleep_for(std::chrono::hours(1));
    slow_ = true;
  }
  if (slow_) std::this_thread::sleep_for((kSlowdown - 1) * call.kernel->duration);
  inner_.run(call);
}

FaultyMesh::FaultyMesh(Mesh& inner, const std::vector<Fault>& faults)
    : inner_(inner), faults_(of_rank(faults, inner.rank(), false)) {}

void FaultyMesh::send(int peer, const Frame& frame, std::span<const std::byte> body,
                      std::function<void()> sent) {
  if (is_message(frame) && spoil(peer, frame, body)) return sent();
  inner_.send(peer, frame, body, std::move(sent));
}

void FaultyMesh::send(int peer, const Frame& frame, std::vector<std::byte> body) {
  if (is_message(frame) && spoil(peer, frame, body)) return;
  inner_.send(peer, frame, std::move(body));
}

bool FaultyMesh::spoil(int peer, const Frame& frame, std::span<const std::byte> body) {
  const auto found = faults_.find(messages_.fetch_add(1));
  if (found == faults_.end()) return false;
  Frame other = frame;
  std::vector<std::byte> bytes(body.begin(), body.end());
  switch (found->second) {
    case FaultKind::drop:
      return true;
    case FaultKind::duplicate:
      inner_.send(peer, frame, bytes);
      break;
    case FaultKind::reorder:
      ++other.sequence;
      break;
    case FaultKind::corrupt:
      if (bytes.empty()) {
        other.checksum ^= 1;
      } else {
        bytes[bytes.size() / 2] ^= std::byte{4};
      }
      break;
    case FaultKind::size:
      ++other.declared;
      break;
    default:
      break;
  }
  inner_.send(peer, other, std::move(bytes));
  return true;
}

}  // namespace counterflow::exec

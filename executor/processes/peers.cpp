#include "executor/processes/peers.h"

#include <fmt/format.h>

namespace counterflow::exec {
namespace {

constexpr std::chrono::milliseconds kOwnPause(500);  // a rank that runs looks much more often

}  // namespace

Peers::Peers(int size, int me, std::chrono::nanoseconds silence)
    : me_(me), silence_(silence), peers_(static_cast<std::size_t>(size)) {
  for (Peer& peer : peers_) peer.last_heard = Clock::now();
}

void Peers::heard(int peer) {
  const std::scoped_lock lock(mutex_);
  peers_[static_cast<std::size_t>(peer)].last_heard = Clock::now();
}

void Peers::look(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  const auto pause = now - last_look_;
  if (last_look_ != Clock::time_point() && pause > kOwnPause) {
    for (Peer& peer : peers_) peer.last_heard += pause;
  }
  last_look_ = now;
}

void Peers::note(int peer, const Frame& frame, std::span<const std::byte> body) {
  {
    const std::scoped_lock lock(mutex_);
    if (frame.kind == FrameKind::stop && !stop_) stop_ = failure_from_bytes(body);
    Peer& one = peers_[static_cast<std::size_t>(peer)];
    if (frame.kind == FrameKind::progress) one.progress = progress_from_bytes(body);
    one.said[frame.kind] = {frame, {body.begin(), body.end()}};
  }
  changed_.notify_all();
}

void Peers::lose(int peer, const std::string& why) {
  {
    const std::scoped_lock lock(mutex_);
    peers_[static_cast<std::size_t>(peer)].lost = why;
  }
  changed_.notify_all();
}

void Peers::forget(int peer, FrameKind kind) {
  const std::scoped_lock lock(mutex_);
  peers_[static_cast<std::size_t>(peer)].said.erase(kind);
}

bool Peers::wait_for(std::chrono::nanoseconds most, const std::function<bool()>& ready) {
  if (ready()) return true;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most);
  }
  return ready();
}

bool Peers::has(int peer, FrameKind kind) const {
  const std::scoped_lock lock(mutex_);
  return peers_[static_cast<std::size_t>(peer)].said.contains(kind);
}

bool Peers::all_have(FrameKind kind) const {
  const std::scoped_lock lock(mutex_);
  for (std::size_t p = 0; p < peers_.size(); ++p) {
    if (p == static_cast<std::size_t>(me_) || !gone_locked(peers_[p]).empty()) continue;
    if (!peers_[p].said.contains(kind)) return false;
  }
  return true;
}

bool Peers::all_at(FrameKind kind, int step) const {
  const std::scoped_lock lock(mutex_);
  for (std::size_t p = 0; p < peers_.size(); ++p) {
    if (p == static_cast<std::size_t>(me_)) continue;
    const auto found = peers_[p].said.find(kind);
    if (found == peers_[p].said.end() || found->second.frame.step != step) return false;
  }
  return true;
}

Frame Peers::frame(int peer, FrameKind kind) const {
  const std::scoped_lock lock(mutex_);
  const auto& said = peers_[static_cast<std::size_t>(peer)].said;
  const auto found = said.find(kind);
  return found == said.end() ? Frame{} : found->second.frame;
}

std::vector<std::byte> Peers::body(int peer, FrameKind kind) const {
  const std::scoped_lock lock(mutex_);
  const auto& said = peers_[static_cast<std::size_t>(peer)].said;
  const auto found = said.find(kind);
  return found == said.end() ? std::vector<std::byte>() : found->second.body;
}

int Peers::state(int peer, std::uint32_t instruction) const {
  const std::scoped_lock lock(mutex_);
  const Peer& one = peers_[static_cast<std::size_t>(peer)];
  if (!one.said.contains(FrameKind::progress)) return 0;
  return instruction < one.progress.states.size() ? one.progress.states[instruction] : 0;
}

std::optional<Lack> Peers::lacks(int peer, std::uint32_t instruction) const {
  const std::scoped_lock lock(mutex_);
  const Peer& one = peers_[static_cast<std::size_t>(peer)];
  if (!one.said.contains(FrameKind::progress)) return std::nullopt;
  for (const PeerProgress::Lacking& each : one.progress.lacks) {
    if (each.instruction == instruction) return each.lack;
  }
  return std::nullopt;
}

std::string Peers::gone_locked(const Peer& peer) const {
  if (!peer.lost.empty()) return "is gone: " + peer.lost;
  const auto silent = Clock::now() - peer.last_heard;
  if (silent < silence_) return {};
  return fmt::format("has said nothing for {} ms", silent / std::chrono::milliseconds(1));
}

std::string Peers::gone(int peer) const {
  if (peer == me_) return {};
  const std::scoped_lock lock(mutex_);
  return gone_locked(peers_[static_cast<std::size_t>(peer)]);
}

std::optional<int> Peers::first_gone() const {
  const std::scoped_lock lock(mutex_);
  for (std::size_t p = 0; p < peers_.size(); ++p) {
    if (p != static_cast<std::size_t>(me_) && !gone_locked(peers_[p]).empty()) {
      return static_cast<int>(p);
    }
  }
  return std::nullopt;
}

std::optional<Failure> Peers::stop() const {
  const std::scoped_lock lock(mutex_);
  return stop_;
}

}  // namespace counterflow::exec

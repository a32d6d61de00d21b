#include "executor/processes/rank_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/interpreter.h"
#include "executor/processes/agreement.h"
#include "executor/processes/mesh_transport.h"
#include "executor/processes/peers.h"
#include "executor/processes/step_watch.h"
#include "executor/processes/wire.h"
#include "executor/strict_transport.h"

namespace counterflow::exec {
namespace {

using Clock = Interpreter::Clock;
using namespace std::chrono_literals;

constexpr int kPings = 8;
constexpr auto kSilence = 3s;  // a loaded machine may keep a rank from saying anything for a while
constexpr auto kHeartbeat = 400ms;  // to every other: of many ranks on one machine, quite some
constexpr auto kClosing = 3s;       // for the last word to reach those that still listen
constexpr auto kStartDelay = 2ms;   // from the word to begin to the begin

std::int64_t since_epoch(Clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

RankProgram const& none() {
  static const RankProgram kNone;
  return kNone;
}

}  // namespace

class RankRun::Session final : public Mesh::Listener, public Watch {
 public:
  Session(const Program& program, Compute& compute, const ProcessSettings& settings, Mesh& mesh)
      : program_(program),
        settings_(settings),
        mesh_(mesh),
        me_(mesh.rank()),
        matching_(program),
        prerequisites_(program, settings.run.execution),
        memories_(memories(program, me_)),
        transport_(program, matching_, settings.run.execution.semantics,
                   memories_[static_cast<std::size_t>(me_)], mesh),
        strict_(program, matching_, settings.run.execution, transport_),
        own_{static_cast<std::uint32_t>(me_)},
        interpreter_({.program = program,
                      .matching = matching_,
                      .prerequisites = prerequisites_,
                      .compute = compute,
                      .transport = strict_,
                      .memories = memories_},
                     own_),
        peers_(mesh.size(), me_, std::max<std::chrono::nanoseconds>(settings.patience, kSilence)),
        watch_({.program = program,
                .matching = matching_,
                .prerequisites = prerequisites_,
                .transport = transport_,
                .peers = peers_,
                .me = me_,
                .size = mesh.size(),
                .patience = settings.patience,
                .ask_everyone = [this] { broadcast({.kind = FrameKind::question}); }}) {}

  RankResult run() {
    mesh_.listen(*this);
    RankResult result;
    std::optional<Failure> failure = agree();
    if (!failure) failure = align_clocks();
    for (int step = 0; !failure && step < settings_.run.steps; ++step) failure = run_step(step);
    if (!failure) failure = gather(result.run.steps);
    if (failure) {
      // A step that others did not complete counts for nobody.
      tell_everyone(*failure);
      result.run.failure = std::move(failure);
      result.run.stopped.resize(program_.ranks.size());
      result.run.stopped[own_.front()] = interpreter_.progress(own_.front());
    }
    result.abandoned = interpreter_.abandoned();
    mesh_.close(kClosing);
    return result;
  }

  // ---- What arrives -------------------------------------------------------------------------

  std::span<std::byte> room(int peer, const Frame& frame) override {
    return frame.kind == FrameKind::data ? transport_.room(peer, frame) : std::span<std::byte>();
  }

  void received(int peer, const Frame& frame, std::span<const std::byte> body) override {
    peers_.heard(peer);
    switch (frame.kind) {
      case FrameKind::ready:
        return transport_.received_ready(peer, frame);
      case FrameKind::data:
        return transport_.received_data(peer, frame, body);
      case FrameKind::share:
      case FrameKind::sum:
        return transport_.received_part(peer, frame, body);
      case FrameKind::ping:
        return mesh_.send(peer, {.kind = FrameKind::pong, .value = since_epoch(Clock::now())}, {});
      case FrameKind::question:
        return mesh_.send(peer, {.kind = FrameKind::progress, .step = interpreter_.step()},
                          to_bytes(watch_.progress(interpreter_)));
      default:
        return peers_.note(peer, frame, body);
    }
  }

  void lost(int peer, const std::string& why) override { peers_.lose(peer, why); }

  // ---- While a step runs --------------------------------------------------------------------

  std::optional<Failure> look(Interpreter& run) override {
    if (auto failure = peers_.stop()) return failure;
    send_heartbeat();
    auto failure = watch_.look(run);
    // Before this rank's own computes have come back: the others need not wait for them.
    if (failure) tell_everyone(*failure);
    return failure;
  }

 private:
  static std::vector<RankMemory> memories(const Program& program, int me) {
    std::vector<RankMemory> all;
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
      all.emplace_back(r == static_cast<std::size_t>(me) ? program.ranks[r] : none());
    }
    return all;
  }

  void broadcast(const Frame& frame, const std::vector<std::byte>& body = {}) {
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      if (peer != me_ && peers_.gone(peer).empty()) mesh_.send(peer, frame, body);
    }
  }

  void tell_everyone(const Failure& failure) {
    if (told_ || peers_.stop()) return;
    told_ = true;
    broadcast({.kind = FrameKind::stop}, to_bytes(failure));
  }

  void send_heartbeat() {
    const auto now = Clock::now();
    peers_.look(now);
    if (now - last_heartbeat_ < kHeartbeat) return;
    last_heartbeat_ = now;
    broadcast({.kind = FrameKind::heartbeat});
  }

  // Until `ready`, or somebody is gone, or says stop.
  std::optional<Failure> wait(const char* for_what, const std::function<bool()>& ready) {
    while (!peers_.wait_for(20ms, ready)) {
      if (auto failure = peers_.stop()) return failure;
      send_heartbeat();
      if (auto failure = someone_left(for_what)) return failure;
    }
    return std::nullopt;
  }

  // Until everyone has said so.
  std::optional<Failure> wait_for_all(const char* for_what, FrameKind kind) {
    auto failure = wait(for_what, [&] { return peers_.all_have(kind); });
    return failure ? failure : someone_left(for_what);
  }

  [[nodiscard]] std::optional<Failure> someone_left(const char* for_what) const {
    const auto peer = peers_.first_gone();
    if (!peer) return std::nullopt;
    return Failure{me_, 0, step_,
                   fmt::format("{}: rank {} {}", for_what, *peer, peers_.gone(*peer)), *peer};
  }

  // ---- Before and between steps -------------------------------------------------------------

  std::optional<Failure> agree() {
    const Intent mine{hash(program_), fmt::format("{} steps under '{}'", settings_.run.steps,
                                                  settings_.run.execution.name)};
    broadcast({.kind = FrameKind::hello}, to_bytes(mine));
    if (auto failure = wait_for_all("before the first step", FrameKind::hello)) return failure;
    std::vector<Intent> intents;
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      intents.push_back(peer == me_ ? mine
                                    : intent_from_bytes(peers_.body(peer, FrameKind::hello)));
    }
    const auto found = disagreement(intents);
    if (!found) return std::nullopt;
    return Failure{me_, 0, 0, found->reason, found->culprit};
  }

  // What to add to this clock for rank 0's: from the exchange that took least.
  std::optional<Failure> align_clocks() {
    if (me_ == 0) return std::nullopt;
    auto least = Clock::duration::max();
    for (int n = 0; n < kPings; ++n) {
      const auto sent = Clock::now();
      peers_.forget(0, FrameKind::pong);
      mesh_.send(0, {.kind = FrameKind::ping}, {});
      auto failure =
          wait("while clocks are aligned", [&] { return peers_.has(0, FrameKind::pong); });
      if (failure) return failure;
      const Clock::duration took = Clock::now() - sent;
      if (took >= least) continue;
      least = took;
      offset_ = peers_.frame(0, FrameKind::pong).value - since_epoch(sent + took / 2);
    }
    return std::nullopt;
  }

  std::optional<Failure> run_step(int step) {
    step_ = step;
    // The transport must know the step before a message of it may come.
    strict_.begin_step(step, interpreter_);
    auto [failure, start] = begin_together(step);
    if (!failure) {
      watch_.begin_step();
      failure = interpreter_.run_step(step, start, *this, settings_.grace);
    }
    if (failure) return failure;
    measured_.push_back(std::move(interpreter_.timelines()[own_.front()]));
    if (settings_.run.step_done && me_ == 0) settings_.run.step_done(step + 1);
    return std::nullopt;
  }

  std::pair<std::optional<Failure>, Clock::time_point> begin_together(int step) {
    const Frame arrived{.kind = FrameKind::arrived, .step = step};
    Frame go{.kind = FrameKind::go, .step = step};
    std::optional<Failure> failure;
    if (me_ == 0) {
      failure = wait("before the step", [&] { return peers_.all_at(FrameKind::arrived, step); });
      go.value = since_epoch(Clock::now() + kStartDelay);
      if (!failure) broadcast(go);
    } else {
      mesh_.send(0, arrived, {});
      failure = wait("before the step", [&] {
        return peers_.has(0, FrameKind::go) && peers_.frame(0, FrameKind::go).step == step;
      });
      if (!failure) go = peers_.frame(0, FrameKind::go);
    }
    const std::chrono::nanoseconds at(go.value - offset_);
    return {failure, Clock::time_point(std::chrono::duration_cast<Clock::duration>(at))};
  }

  std::optional<Failure> gather(std::vector<Timeline>& steps) {
    if (me_ != 0) {
      mesh_.send(0, {.kind = FrameKind::timelines}, to_bytes(measured_));
      return wait("after the last step", [&] { return peers_.has(0, FrameKind::done); });
    }
    if (auto failure = wait_for_all("after the last step", FrameKind::timelines)) return failure;
    broadcast({.kind = FrameKind::done});
    steps.resize(measured_.size(), Timeline{std::vector<RankTimeline>(program_.ranks.size())});
    for (int rank = 0; rank < mesh_.size(); ++rank) {
      std::vector<RankTimeline> of_rank =
          rank == 0 ? std::move(measured_)
                    : timelines_from_bytes(peers_.body(rank, FrameKind::timelines));
      for (std::size_t s = 0; s < steps.size() && s < of_rank.size(); ++s) {
        steps[s].ranks[static_cast<std::size_t>(rank)] = std::move(of_rank[s]);
      }
    }
    return std::nullopt;
  }

  const Program& program_;
  const ProcessSettings settings_;
  Mesh& mesh_;
  const int me_;
  const Matching matching_;
  const Prerequisites prerequisites_;
  std::vector<RankMemory> memories_;  // [rank], only this one's with slots
  MeshTransport transport_;
  StrictTransport strict_;
  const std::vector<std::uint32_t> own_;
  Interpreter interpreter_;
  Peers peers_;
  StepWatch watch_;
  std::vector<RankTimeline> measured_;  // [step] of this rank
  std::int64_t offset_ = 0;             // ns to add to this clock for rank 0's
  Clock::time_point last_heartbeat_;
  int step_ = 0;
  bool told_ = false;
};

RankRun::RankRun(const Program& program, Compute& compute, const ProcessSettings& settings,
                 Mesh& mesh)
    : session_(std::make_unique<Session>(program, compute, settings, mesh)) {}

RankRun::~RankRun() = default;

RankResult RankRun::run() {
  return session_->run();
}

}  // namespace counterflow::exec

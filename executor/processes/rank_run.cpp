#include "executor/processes/rank_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/interpreter.h"
#include "executor/processes/agreement.h"
#include "executor/processes/mesh_transport.h"
#include "executor/processes/peers.h"
#include "executor/processes/wire.h"
#include "executor/progress.h"
#include "executor/strict_transport.h"
#include "scheduler/ir/instruction_text.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow::exec {
namespace {

using Clock = Interpreter::Clock;
using Index = Interpreter::Index;
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
        peers_(mesh.size(), me_, std::max<std::chrono::nanoseconds>(settings.patience, kSilence)) {}

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
        return answer(peer);
      default:
        return peers_.note(peer, frame, body);
    }
  }

  void lost(int peer, const std::string& why) override { peers_.lose(peer, why); }

  // ---- While a step runs --------------------------------------------------------------------

  std::optional<Failure> look(Interpreter& run) override {
    if (auto failure = peers_.stop()) return failure;
    send_heartbeat();
    auto failure = fault_of(run);
    // Before this rank's own computes have come back: the others need not wait for them.
    if (failure) tell_everyone(*failure);
    return failure;
  }

 private:
  std::optional<Failure> fault_of(const Interpreter& run) {
    if (auto failure = overdue_compute(run)) return failure;
    if (asking_) return judge(run);
    const bool is_gone = peers_.first_gone().has_value();
    if (is_gone || (overdue_message(run) && Clock::now() >= ask_again_)) ask();
    return std::nullopt;
  }

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
      ask_again_ = {};
      asking_ = false;
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

  // ---- When something takes too long --------------------------------------------------------

  [[nodiscard]] Time deadline(const Instruction& what) const {
    const Time longest = settings_.patience;
    if (what.kind != InstructionKind::run) return longest;
    return std::max(longest, 4 * program_.kernels[what.kernel].duration);
  }

  template <typename Which>
  std::optional<Index> first_overdue(const Interpreter& run, Which which) const {
    const auto size = static_cast<std::uint32_t>(program_.ranks[own_.front()].instructions.size());
    for (std::uint32_t i = 0; i < size; ++i) {
      const Index index = prerequisites_.index(own_.front(), i);
      if (!run.begun(index) || run.ended(index)) continue;
      const Instruction& what = run.instruction(index);
      if (which(what) && run.now() - run.begun_at(index) > deadline(what)) return index;
    }
    return std::nullopt;
  }

  std::optional<Failure> overdue_compute(const Interpreter& run) const {
    const auto index = first_overdue(
        run, [](const Instruction& what) { return what.kind == InstructionKind::run; });
    if (!index) return std::nullopt;
    return Failure{
        me_, prerequisites_.instruction(*index), step_,
        fmt::format("{} has run for {} ms; it may take {} ms",
                    to_string(run.instruction(*index).op), (run.now() - run.begun_at(*index)) / 1ms,
                    deadline(run.instruction(*index)) / 1ms),
        me_};
  }

  // A transfer or a collective.
  std::optional<Index> overdue_message(const Interpreter& run) const {
    return first_overdue(run,
                         [](const Instruction& what) { return what.kind != InstructionKind::run; });
  }

  void ask() {
    asking_ = true;
    asked_at_ = Clock::now();
    for (int peer = 0; peer < mesh_.size(); ++peer) peers_.forget(peer, FrameKind::progress);
    broadcast({.kind = FrameKind::question});
  }

  void answer(int peer) {
    PeerProgress mine;
    const auto size = program_.ranks[own_.front()].instructions.size();
    mine.states.reserve(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      const Index index = prerequisites_.index(own_.front(), i);
      mine.states.push_back(interpreter_.ended(index) ? 2 : interpreter_.begun(index) ? 1 : 0);
      if (mine.states.back() != 1) continue;
      if (const auto lack = transport_.lacks(i)) mine.lacks.push_back({i, *lack});
    }
    mesh_.send(peer, {.kind = FrameKind::progress, .step = interpreter_.step()}, to_bytes(mine));
  }

  // 0: not begun, 1: begun, 2: ended.
  [[nodiscard]] int state(const Interpreter& run, Index index) const {
    const auto rank = static_cast<int>(prerequisites_.rank(index));
    if (rank == me_) return run.ended(index) ? 2 : run.begun(index) ? 1 : 0;
    if (!peers_.has(rank, FrameKind::progress)) return 0;
    const int step = peers_.frame(rank, FrameKind::progress).step;
    if (step != run.step()) return step > run.step() ? 2 : 0;
    return peers_.state(rank, prerequisites_.instruction(index));
  }

  [[nodiscard]] std::optional<Lack> lacks(const Interpreter& run, Index index) const {
    const auto rank = static_cast<int>(prerequisites_.rank(index));
    const std::uint32_t instruction = prerequisites_.instruction(index);
    if (rank == me_) return transport_.lacks(instruction);
    if (peers_.frame(rank, FrameKind::progress).step != run.step()) return std::nullopt;
    return peers_.lacks(rank, instruction);
  }

  // Once everybody who is there has answered: does the step still get on?
  std::optional<Failure> judge(const Interpreter& run) {
    const auto waited = Clock::now() - asked_at_;
    if (!peers_.all_have(FrameKind::progress)) {
      if (waited > 500ms) ask();
      return std::nullopt;
    }
    asking_ = false;
    ask_again_ = Clock::now() + 200ms;
    const Progress progress{
        .begun = [&](Index index) { return state(run, index) > 0; },
        .ended = [&](Index index) { return state(run, index) == 2; },
        .gone = [&](std::uint32_t rank) { return peers_.gone(static_cast<int>(rank)); },
        .lacks = [&](Index index) { return lacks(run, index); }};
    const std::optional<ChainEnd> found = first_hopeless(run, progress);
    if (!found) return peers_.first_gone() ? someone_is_gone(run) : std::nullopt;
    // What was on its way when the others answered has arrived by the next time.
    const bool sure = found->kind == ChainEnd::Kind::gone ||
                      (suspected_ == found->last && suspected_in_ == run.step());
    suspected_ = found->last;
    suspected_in_ = run.step();
    if (!sure) return std::nullopt;
    return failure_at(program_, matching_, prerequisites_, progress, *found, run.step());
  }

  // Of what has begun here and does not end, the first that waits for somebody who is gone, or, if
  // it is late, for what will not come; none if all wait for what is under way.
  [[nodiscard]] std::optional<ChainEnd> first_hopeless(const Interpreter& run,
                                                       const Progress& progress) const {
    const auto size = static_cast<std::uint32_t>(program_.ranks[own_.front()].instructions.size());
    for (std::uint32_t i = 0; i < size; ++i) {
      const Index index = prerequisites_.index(own_.front(), i);
      if (!run.begun(index) || run.ended(index)) continue;
      const bool late = run.now() - run.begun_at(index) > deadline(run.instruction(index));
      if (!late && !peers_.first_gone()) continue;
      const ChainEnd end = chain_end(program_, matching_, prerequisites_, progress, index);
      if (end.kind == ChainEnd::Kind::gone) return end;
      if (end.kind != ChainEnd::Kind::busy && late) return end;
    }
    return std::nullopt;
  }

  // A rank is gone that nothing here waits for yet.
  std::optional<Failure> someone_is_gone(const Interpreter& run) const {
    const int peer = peers_.first_gone().value_or(me_);
    const auto size = static_cast<std::uint32_t>(program_.ranks[own_.front()].instructions.size());
    std::uint32_t next = 0;
    while (next + 1 < size && run.ended(prerequisites_.index(own_.front(), next))) ++next;
    return Failure{me_, next, run.step(),
                   fmt::format("{} cannot go on: rank {} {}",
                               called(program_.ranks[own_.front()],
                                      program_.ranks[own_.front()].instructions[next]),
                               peer, peers_.gone(peer)),
                   peer};
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
  std::vector<RankTimeline> measured_;  // [step] of this rank
  std::int64_t offset_ = 0;             // ns to add to this clock for rank 0's
  Clock::time_point last_heartbeat_;
  bool asking_ = false;
  Clock::time_point asked_at_, ask_again_;
  Index suspected_ = 0;
  int suspected_in_ = -1;
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

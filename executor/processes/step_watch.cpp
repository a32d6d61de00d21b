#include "executor/processes/step_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/ir/instruction_text.h"

namespace counterflow::exec {

using namespace std::chrono_literals;

StepWatch::StepWatch(Context context)
    : program_(context.program),
      matching_(context.matching),
      prerequisites_(context.prerequisites),
      transport_(context.transport),
      peers_(context.peers),
      me_(context.me),
      size_(context.size),
      patience_(context.patience),
      ask_everyone_(std::move(context.ask_everyone)) {}

void StepWatch::begin_step() {
  ask_again_ = {};
  asking_ = false;
}

std::optional<Failure> StepWatch::look(const Interpreter& run) {
  if (auto failure = overdue_compute(run)) return failure;
  if (asking_) return judge(run);
  const bool is_gone = peers_.first_gone().has_value();
  if (is_gone || (has_overdue_message(run) && Clock::now() >= ask_again_)) ask();
  return std::nullopt;
}

// ---- What takes too long ------------------------------------------------------------------------

Time StepWatch::deadline(const Instruction& what) const {
  if (what.kind != InstructionKind::run) return patience_;
  return std::max(patience_, 4 * program_.kernels[what.kernel].duration);
}

bool StepWatch::is_late(const Interpreter& run, Index index) const {
  return run.now() - run.begun_at(index) > deadline(run.instruction(index));
}

std::vector<StepWatch::Index> StepWatch::under_way(const Interpreter& run) const {
  std::vector<Index> found;
  for (std::uint32_t i = 0; i < own_size(); ++i) {
    const Index index = own_index(i);
    if (run.begun(index) && !run.ended(index)) found.push_back(index);
  }
  return found;
}

std::optional<Failure> StepWatch::overdue_compute(const Interpreter& run) const {
  for (const Index index : under_way(run)) {
    const Instruction& what = run.instruction(index);
    if (what.kind != InstructionKind::run || !is_late(run, index)) continue;
    return Failure{me_, prerequisites_.instruction(index), run.step(),
                   fmt::format("{} has run for {} ms; it may take {} ms", called(own(), what),
                               (run.now() - run.begun_at(index)) / 1ms, deadline(what) / 1ms),
                   me_};
  }
  return std::nullopt;
}

// A transfer or a collective.
bool StepWatch::has_overdue_message(const Interpreter& run) const {
  return std::ranges::any_of(under_way(run), [&](Index index) {
    return run.instruction(index).kind != InstructionKind::run && is_late(run, index);
  });
}

// ---- How far all are ----------------------------------------------------------------------------

void StepWatch::ask() {
  asking_ = true;
  asked_at_ = Clock::now();
  for (int peer = 0; peer < size_; ++peer) peers_.forget(peer, FrameKind::progress);
  ask_everyone_();
}

PeerProgress StepWatch::progress(const Interpreter& run) const {
  PeerProgress mine;
  mine.states.reserve(own_size());
  for (std::uint32_t i = 0; i < own_size(); ++i) {
    const Index index = own_index(i);
    mine.states.push_back(run.ended(index) ? 2 : run.begun(index) ? 1 : 0);
    if (mine.states.back() != 1) continue;
    if (const auto lack = transport_.lacks(i)) mine.lacks.push_back({i, *lack});
  }
  return mine;
}

int StepWatch::state(const Interpreter& run, Index index) const {
  const auto rank = static_cast<int>(prerequisites_.rank(index));
  if (rank == me_) return run.ended(index) ? 2 : run.begun(index) ? 1 : 0;
  if (!peers_.has(rank, FrameKind::progress)) return 0;
  const int step = peers_.frame(rank, FrameKind::progress).step;
  if (step != run.step()) return step > run.step() ? 2 : 0;
  return peers_.state(rank, prerequisites_.instruction(index));
}

std::optional<Lack> StepWatch::lacks(const Interpreter& run, Index index) const {
  const auto rank = static_cast<int>(prerequisites_.rank(index));
  const std::uint32_t instruction = prerequisites_.instruction(index);
  if (rank == me_) return transport_.lacks(instruction);
  if (peers_.frame(rank, FrameKind::progress).step != run.step()) return std::nullopt;
  return peers_.lacks(rank, instruction);
}

// Once everybody who is there has answered: does the step still get on?
std::optional<Failure> StepWatch::judge(const Interpreter& run) {
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
  if (!found) {
    const auto gone = peers_.first_gone();
    return gone ? std::optional(someone_is_gone(run, *gone)) : std::nullopt;
  }
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
std::optional<ChainEnd> StepWatch::first_hopeless(const Interpreter& run,
                                                  const Progress& progress) const {
  for (const Index index : under_way(run)) {
    const bool late = is_late(run, index);
    if (!late && !peers_.first_gone()) continue;
    const ChainEnd end = chain_end(program_, matching_, prerequisites_, progress, index);
    if (end.kind == ChainEnd::Kind::gone) return end;
    if (end.kind != ChainEnd::Kind::busy && late) return end;
  }
  return std::nullopt;
}

// A rank is gone that nothing here waits for yet.
Failure StepWatch::someone_is_gone(const Interpreter& run, int who) const {
  std::uint32_t next = 0;
  while (next + 1 < own_size() && run.ended(own_index(next))) ++next;
  return {me_, next, run.step(),
          fmt::format("{} cannot go on: rank {} {}", called(own(), own().instructions[next]), who,
                      peers_.gone(who)),
          who};
}

}  // namespace counterflow::exec

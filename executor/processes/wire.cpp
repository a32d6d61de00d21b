#include "executor/processes/wire.h"

namespace counterflow::exec {
namespace {

void put(ByteWriter& out, const Failure& failure) {
  out.put(failure.rank).put(failure.instruction).put(failure.step);
  out.put(failure.culprit.value_or(-1));
  out.put_list(std::span(failure.reason));
}

Failure get_failure(ByteReader& in) {
  Failure failure;
  failure.rank = in.get<Rank>();
  failure.instruction = in.get<std::uint32_t>();
  failure.step = in.get<int>();
  if (const auto culprit = in.get<Rank>(); culprit >= 0) failure.culprit = culprit;
  const std::vector<char> reason = in.get_list<char>();
  failure.reason.assign(reason.begin(), reason.end());
  return failure;
}

}  // namespace

std::vector<std::byte> to_bytes(const Failure& failure) {
  ByteWriter out;
  put(out, failure);
  return out.take();
}

Failure failure_from_bytes(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  return get_failure(in);
}

std::vector<std::byte> to_bytes(const Intent& intent) {
  ByteWriter out;
  out.put(intent.program).put_list(std::span(intent.rules));
  return out.take();
}

Intent intent_from_bytes(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Intent intent;
  intent.program = in.get<std::uint64_t>();
  const std::vector<char> rules = in.get_list<char>();
  intent.rules.assign(rules.begin(), rules.end());
  return intent;
}

std::vector<std::byte> to_bytes(const PeerProgress& progress) {
  ByteWriter out;
  out.put_list(std::span(progress.states)).put_list(std::span(progress.lacks));
  return out.take();
}

PeerProgress progress_from_bytes(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  PeerProgress progress;
  progress.states = in.get_list<std::uint8_t>();
  progress.lacks = in.get_list<PeerProgress::Lacking>();
  return progress;
}

std::vector<std::byte> to_bytes(const std::vector<RankTimeline>& steps) {
  ByteWriter out;
  out.put(steps.size());
  for (const RankTimeline& step : steps) out.put_list(std::span(step.instructions));
  return out.take();
}

std::vector<RankTimeline> timelines_from_bytes(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  std::vector<RankTimeline> steps;
  const auto count = in.get<std::size_t>();
  for (std::size_t s = 0; s < count && in.good(); ++s) {
    steps.push_back({in.get_list<Interval>(), {}});
  }
  return steps;
}

std::vector<std::byte> to_bytes(const RunResult& result) {
  ByteWriter out;
  out.put(result.failure.has_value());
  if (result.failure) put(out, *result.failure);
  out.put(result.steps.size());
  for (const Timeline& step : result.steps) {
    out.put(step.ranks.size());
    for (const RankTimeline& rank : step.ranks) out.put_list(std::span(rank.instructions));
  }
  out.put(result.stopped.size());
  for (const auto& rank : result.stopped) {
    out.put(rank.has_value());
    if (!rank) continue;
    out.put(rank->step).put(rank->start_ns).put(rank->stopped);
    out.put_list(std::span(rank->instructions));
  }
  return out.take();
}

RunResult result_from_bytes(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  RunResult result;
  if (in.get<bool>()) result.failure = get_failure(in);
  const auto steps = in.get<std::size_t>();
  for (std::size_t s = 0; s < steps && in.good(); ++s) {
    Timeline& step = result.steps.emplace_back();
    const auto ranks = in.get<std::size_t>();
    for (std::size_t r = 0; r < ranks && in.good(); ++r) {
      step.ranks.push_back({in.get_list<Interval>(), {}});
    }
  }
  const auto stopped = in.get<std::size_t>();
  for (std::size_t r = 0; r < stopped && in.good(); ++r) {
    auto& rank = result.stopped.emplace_back();
    if (!in.get<bool>()) continue;
    rank.emplace();
    rank->step = in.get<int>();
    rank->start_ns = in.get<std::int64_t>();
    rank->stopped = in.get<Time>();
    rank->instructions = in.get_list<Interval>();
  }
  return result;
}

}  // namespace counterflow::exec

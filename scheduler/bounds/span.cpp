#include "scheduler/bounds/span.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/bounds/lower_bound.h"

// Why a rank must idle. Its stage runs microbatches in order in some best schedule (docs/search.md;
// sorting begins leaves the span as it is). From the begin of F(n) to the begin of I(n) passes at
// least the round trip R through the stages behind. What the rank can do meanwhile is limited by
// memory, which holds K microbatches whose I has not ended:
//  - F of n to n+K-1, for F(n+K) waits for I(n);
//  - I of x and W of y microbatches before n, x <= y: those not yet done at the begin of F(n),
//  which
//    then hold x activations and y-x of what W keeps, beside the activation of n.
// What is left of R is idle time. The windows of n = 0, of n = m-1 and of every K-th in between are
// disjoint, again since F(n+K) waits for I(n), so their idle times add up.
namespace counterflow {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;

// What a rank may hold, of bytes or of activations, and what its stage takes of it.
struct Room {
  std::int64_t limit = kUnlimited;
  std::int64_t activation = 0;
  std::int64_t kept_for_weight = 0;
};

// A rank and its one stage. Where the backward is one op that is the gradient, and there is no W.
struct Station {
  std::int64_t forward = 0;
  std::int64_t gradient = 0;
  std::int64_t weight = 0;
  std::int64_t round_trip = 0;  // from the begin of F to the begin of the gradient
  std::vector<Room> rooms;
};

std::vector<std::int64_t> loads(const Problem& problem) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(problem.ranks()), 0);
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    std::int64_t& load = result[static_cast<std::size_t>(rank)];
    for (const Chunk& chunk : problem.placement.chunks_of(rank)) {
      for (Microbatch mb = 0; mb < problem.microbatches; ++mb) {
        if (problem.replica_of(mb) != chunk.replica) continue;
        const auto add = [&](OpKind kind) {
          load += problem.costs.duration({kind, 0, static_cast<std::uint16_t>(chunk.stage), mb})
                      .count();
        };
        add(OpKind::forward);
        if (problem.needs_backward_input(chunk.stage, mb)) add(OpKind::backward_input);
        if (problem.needs_backward_weight(chunk.stage, mb)) add(OpKind::backward_weight);
      }
    }
  }
  return result;
}

bool has_round_trips(const Problem& problem) {
  if (problem.forward_only || !problem.phases.empty() || !problem.costs.uniform()) return false;
  for (Stage s = 0; s < problem.stages(); ++s) {
    const auto feeders = problem.graph.predecessors(s);
    const bool in_chain = s == 0 ? feeders.empty() : feeders.size() == 1 && feeders[0] == s - 1;
    if (!in_chain || !problem.needs_backward_weight(s)) return false;
  }
  return problem.placement.replicas() == 1;
}

std::int64_t hop(const Problem& problem, Stage from, Stage to) {
  return problem.hop(from, to, 0).count();
}

std::vector<Room> rooms(const Problem& problem, Rank rank, Stage stage) {
  const MemoryLimits& limits = problem.limits;
  const auto at = static_cast<std::size_t>(rank);
  std::vector<Room> result;
  if (!limits.bytes.empty()) {
    const std::int64_t fixed = limits.static_memory.empty() ? 0 : limits.static_memory[at].value;
    const StageMemory& memory = problem.memory[static_cast<std::size_t>(stage)];
    result.push_back(
        {limits.bytes[at].value - fixed, memory.activation.value, memory.kept_for_weight.value});
  }
  if (!limits.activations.empty()) result.push_back({limits.activations[at], 1, 1});
  return result;
}

// [stage]
std::vector<Station> stations(const Problem& problem) {
  const bool whole = problem.split_backward == SplitBackward::full;
  std::vector<Station> result(static_cast<std::size_t>(problem.stages()));
  for (Stage s = problem.stages(); s-- > 0;) {
    Station& station = result[static_cast<std::size_t>(s)];
    const StageCost& cost = problem.costs.stages()[static_cast<std::size_t>(s)];
    station.forward = cost.forward.count();
    station.gradient = (cost.backward_input + (whole ? cost.backward_weight : Time{0})).count();
    station.weight = whole ? 0 : cost.backward_weight.count();
    station.round_trip = station.forward;
    if (s + 1 < problem.stages()) {
      const Station& next = result[static_cast<std::size_t>(s) + 1];
      station.round_trip +=
          hop(problem, s, s + 1) + next.round_trip + next.gradient + hop(problem, s + 1, s);
    }
    station.rooms = rooms(problem, problem.placement.rank_of(s), s);
  }
  return result;
}

// Microbatches whose gradient op has not ended, at most.
std::int64_t most_in_flight(const Station& station, std::int64_t microbatches) {
  std::int64_t most = microbatches;
  for (const Room& room : station.rooms) {
    if (room.activation > 0) most = std::min(most, room.limit / room.activation);
  }
  return most;
}

// The most work of microbatches before n that can be left when F(n) begins: x gradients, y W.
std::int64_t work_left(const Station& station, std::int64_t n) {
  std::int64_t most = 0;
  for (std::int64_t x = 0; x <= n; ++x) {
    std::int64_t y = n;
    for (const Room& room : station.rooms) {
      const std::int64_t free = room.limit - room.activation * (x + 1);
      if (free < 0) return most;
      if (room.kept_for_weight > 0) y = std::min(y, x + free / room.kept_for_weight);
    }
    most = std::max(most, x * station.gradient + y * station.weight);
  }
  return most;
}

std::int64_t least_idle(const Station& station, std::int64_t microbatches) {
  const std::int64_t in_flight = most_in_flight(station, microbatches);
  if (in_flight < 1 || microbatches < 1) return 0;
  const auto idle = [&](std::int64_t forwards, std::int64_t before) {
    return std::max<std::int64_t>(
        0, station.round_trip - forwards * station.forward - work_left(station, before));
  };
  const std::int64_t last = microbatches - 1;
  const std::int64_t first_idle = idle(in_flight, 0);
  const std::int64_t last_idle = idle(1, last);
  if (last < in_flight) return std::max(first_idle, last_idle);
  return first_idle + last_idle + (last / in_flight - 1) * idle(in_flight, last);
}

}  // namespace

Time span_bound(const Problem& problem) {
  if (!problem.keeping.empty()) return span_bound(without_moves(problem));
  if (pairs_may_save(problem)) return Time{0};
  std::vector<std::int64_t> spans = loads(problem);
  if (has_round_trips(problem)) {
    const std::vector<Station> all = stations(problem);
    for (Stage s = 0; s < problem.stages(); ++s) {
      const Rank rank = problem.placement.rank_of(s);
      if (problem.placement.chunks_of(rank).size() != 1) continue;
      spans[static_cast<std::size_t>(rank)] +=
          least_idle(all[static_cast<std::size_t>(s)], problem.microbatches);
    }
  }
  return spans.empty() ? Time{0} : Time(*std::ranges::max_element(spans));
}

}  // namespace counterflow

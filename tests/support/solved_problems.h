#pragma once

#include <cctype>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/problem/problem.h"

// Small problems with their best known makespans and proven bounds, solved by an exact solver.
namespace counterflow::testing {

struct SolvedProblem {
  std::string name;
  Problem problem;
  Time makespan{0};  // of the best order known
  Time bound{0};     // proven; the makespan where that is optimal
  Schedule witness;  // empty ranks where the data has none
};

namespace detail {

inline std::vector<std::int64_t> numbers(const nlohmann::json& list) {
  return list.get<std::vector<std::int64_t>>();
}

inline Problem problem_of(const nlohmann::json& row) {
  Problem problem;
  const int p = row.at("p");
  const int v = row.at("chunks");
  problem.placement =
      Placement(placement_kind(row.at("placement").get<std::string>()).value(), p, v);
  problem.graph = StageGraph::chain(problem.placement.stages());
  problem.microbatches = row.at("m");
  problem.split_backward =
      row.at("split_backward").get<bool>() ? SplitBackward::split : SplitBackward::full;
  const auto forward = numbers(row.at("forward"));
  const auto input = numbers(row.at("backward_input"));
  const auto weight = numbers(row.at("backward_weight"));
  const auto activation = numbers(row.at("activation"));
  const auto early = numbers(row.at("released_after_input_gradient"));
  std::vector<StageCost> costs;
  for (std::size_t s = 0; s < forward.size(); ++s) {
    costs.push_back({Time{forward[s]}, Time{input[s]}, Time{weight[s]}});
    problem.memory.push_back({Bytes{activation[s]}, Bytes{activation[s] - early[s]}});
  }
  problem.costs = Costs(costs);
  problem.frozen.assign(forward.size(), 0);
  problem.message.assign(forward.size(), Bytes{0});
  problem.links = Links(Time{row.at("latency").get<std::int64_t>()});
  if (!row.at("memory_limit").is_null()) {
    for (const std::int64_t limit : numbers(row.at("memory_limit"))) {
      problem.limits.bytes.push_back(Bytes{limit});
    }
  }
  return problem;
}

// One letter an op: kind, lower case for a rank's second chunk; microbatches in order.
inline Schedule witness_of(const nlohmann::json& rows, const Problem& problem) {
  Schedule schedule{.name = "witness", .ranks = {}};
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    const auto chunks = problem.placement.chunks_of(rank);
    std::vector<Slot> order;
    int seen[2][4] = {};
    for (const char letter : rows.at(static_cast<std::size_t>(rank)).get<std::string>()) {
      const int which = std::isupper(static_cast<unsigned char>(letter)) != 0 ? 0 : 1;
      const Chunk& chunk = chunks[static_cast<std::size_t>(which)];
      const auto kind = std::string("FBIW").find(
          static_cast<char>(std::toupper(static_cast<unsigned char>(letter))));
      const int first = chunk.replica == 0 ? 0 : (problem.microbatches + 1) / 2;
      order.push_back({{static_cast<OpKind>(kind + 1), chunk.replica,
                        static_cast<std::uint16_t>(chunk.stage), first + seen[which][kind]++},
                       {}});
    }
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

}  // namespace detail

// tests/data/solved_problems.json, made by tools/bench/solve_offline.py.
inline std::vector<SolvedProblem> solved_problems(const std::string& path) {
  std::ifstream file(path);
  std::vector<SolvedProblem> result;
  for (const nlohmann::json& row : nlohmann::json::parse(file)) {
    SolvedProblem solved{row.at("name"), detail::problem_of(row), Time{0}, Time{0}, {}};
    const bool sample = row.contains("best_makespan");
    solved.makespan = Time{row.at(sample ? "best_makespan" : "makespan").get<std::int64_t>()};
    solved.bound = Time{row.at(sample ? "proven_lower_bound" : "bound").get<std::int64_t>()};
    if (!sample) solved.witness = detail::witness_of(row.at("order"), solved.problem);
    result.push_back(std::move(solved));
  }
  return result;
}

}  // namespace counterflow::testing

#include "scheduler/problem/keeping.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "scheduler/problem/problem.h"

namespace counterflow {
namespace {

Op as(const Op& op, OpKind kind) {
  return {kind, op.replica, op.stage, op.microbatch};
}

// What comes before an op, and what after: ops of kind none where nothing does.
Op before(const Problem& problem, const Op& op) {
  if (!makes_input_gradient(op.kind)) return {};
  return as(op, problem.keeping_of(op.stage).restore_kind());
}
Op after(const Problem& problem, const Op& op) {
  if (op.kind != OpKind::forward || !problem.restores(op.stage, op.microbatch)) return {};
  return as(op, problem.keeping_of(op.stage).store_kind());
}

}  // namespace

std::string_view name(KeepingKind kind) {
  switch (kind) {
    case KeepingKind::all:
      return "all";
    case KeepingKind::recompute:
      return "recompute";
    case KeepingKind::offload:
      return "offload";
  }
  return "";
}

Problem with_keeping(Problem problem, std::vector<Keeping> keeping) {
  std::vector<StageCost> costs = problem.costs.stages();
  for (std::size_t s = 0; s < costs.size(); ++s) {
    costs[s].store = keeping.empty() ? Time{0} : keeping[s].store;
    costs[s].restore = keeping.empty() ? Time{0} : keeping[s].restore;
  }
  problem.costs = Costs(std::move(costs), problem.costs.factors(), problem.costs.pairs());
  const bool any = std::ranges::any_of(
      keeping, [](const Keeping& each) { return each.kind != KeepingKind::all; });
  problem.keeping = any ? std::move(keeping) : std::vector<Keeping>{};
  return problem;
}

Problem with_keeping_of(Problem problem, const Schedule& schedule) {
  std::vector<Keeping> keeping = problem.keeping;
  keeping.resize(static_cast<std::size_t>(problem.stages()));
  for (std::size_t s = 0; s < problem.keeping_options.size(); ++s) {
    if (!problem.keeping_options[s].empty()) keeping[s] = {};
  }
  for (const auto& order : schedule.ranks) {
    for (const Slot& slot : order) {
      const Op& op = slot.first;
      if (!restores_or_stores(op.kind) || op.stage >= problem.keeping_options.size()) continue;
      for (const Keeping& option : problem.keeping_options[op.stage]) {
        if (option.restore_kind() == op.kind) keeping[op.stage] = option;
      }
    }
  }
  return with_keeping(std::move(problem), std::move(keeping));
}

std::vector<Op> with_restores(const Problem& problem, const Op& op) {
  std::vector<Op> ops;
  for (const Op& part : {before(problem, op), op, after(problem, op)}) {
    if (part.kind != OpKind::none) ops.push_back(part);
  }
  return ops;
}

Schedule with_restores(const Problem& problem, Schedule schedule) {
  schedule = without_restores(std::move(schedule));
  if (problem.keeping.empty()) return schedule;
  for (auto& order : schedule.ranks) {
    std::vector<Slot> longer;
    longer.reserve(2 * order.size());
    const auto add = [&](const Op& op) {
      if (op.kind != OpKind::none) longer.push_back({op, {}});
    };
    for (const Slot& slot : order) {
      for (const Op& op : {slot.first, slot.second}) add(before(problem, op));
      longer.push_back(slot);
      for (const Op& op : {slot.first, slot.second}) add(after(problem, op));
    }
    order = std::move(longer);
  }
  return schedule;
}

Schedule without_restores(Schedule schedule) {
  for (auto& order : schedule.ranks) {
    std::erase_if(order, [](const Slot& slot) { return restores_or_stores(slot.first.kind); });
  }
  return schedule;
}

}  // namespace counterflow

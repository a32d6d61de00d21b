#include "scheduler/search/choice.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "scheduler/search/least_memory.h"
#include "scheduler/search/model.h"

namespace counterflow {

std::size_t options_of(const Problem& problem, std::size_t stage) {
  return problem.keeping_options.empty() ? 0 : problem.keeping_options[stage].size();
}

Problem chosen(const Problem& problem, const Choice& choice) {
  std::vector<Keeping> keeping = problem.keeping;
  keeping.resize(choice.size());
  for (std::size_t s = 0; s < choice.size(); ++s) {
    if (options_of(problem, s) == 0) continue;
    keeping[s] = choice[s] == 0 ? Keeping{} : problem.keeping_options[s][choice[s] - 1U];
  }
  return with_keeping(problem, std::move(keeping));
}

Choice least_choice(const Problem& problem) {
  Choice choice(static_cast<std::size_t>(problem.stages()), 0);
  for (std::size_t s = 0; s < choice.size(); ++s) {
    std::int64_t least = problem.memory[s].activation.value;
    for (std::size_t k = 0; k < options_of(problem, s); ++k) {
      const std::int64_t kept = problem.keeping_options[s][k].kept.value;
      if (kept >= least) continue;
      least = kept;
      choice[s] = static_cast<std::uint8_t>(k + 1);
    }
  }
  return choice;
}

bool fits(const Problem& problem) {
  return memory_shortages(SearchModel(problem)).empty();
}

Problem relaxed(const Problem& problem) {
  Problem lighter = chosen(problem, Choice(static_cast<std::size_t>(problem.stages()), 0));
  for (std::size_t s = 0; s < lighter.memory.size(); ++s) {
    StageMemory& memory = lighter.memory[s];
    for (std::size_t k = 0; k < options_of(problem, s); ++k) {
      memory.activation = std::min(memory.activation, problem.keeping_options[s][k].kept);
    }
    memory.kept_for_weight = std::min(memory.kept_for_weight, memory.activation);
  }
  return lighter;
}

bool next_choice(const Problem& problem, Choice& choice) {
  for (std::size_t s = 0; s < choice.size(); ++s) {
    if (choice[s] < options_of(problem, s)) {
      ++choice[s];
      return true;
    }
    choice[s] = 0;
  }
  return false;
}

std::size_t count_choices(const Problem& problem, std::size_t most) {
  std::size_t count = 1;
  for (std::size_t s = 0; s < problem.keeping_options.size() && count <= most; ++s) {
    count *= 1 + options_of(problem, s);
  }
  return std::min(count, most + 1);
}

bool has_choices(const Problem& problem) {
  return std::ranges::any_of(problem.keeping_options,
                             [](const auto& options) { return !options.empty(); });
}

Problem with_all_kept(const Problem& problem) {
  Problem all = chosen(problem, Choice(static_cast<std::size_t>(problem.stages()), 0));
  all.keeping_options.clear();
  return all;
}

Problem with_least_kept(const Problem& problem) {
  Problem least = chosen(problem, least_choice(problem));
  least.keeping_options.clear();
  return least;
}

LowerBound lower_bound_of_choices(const Problem& problem, BoundEffort effort) {
  const LowerBound bound = best_lower_bound(relaxed(problem), effort);
  if (!has_choices(problem) || count_choices(problem, kFewChoices) > kFewChoices) return bound;
  std::optional<LowerBound> least;
  Choice choice(static_cast<std::size_t>(problem.stages()), 0);
  do {
    const Problem each = chosen(problem, choice);
    if (!fits(each)) continue;
    const LowerBound its = best_lower_bound(each, effort);
    if (!least || its.value < least->value) least = its;
  } while (next_choice(problem, choice));
  return least && least->value > bound.value ? *least : bound;
}

}  // namespace counterflow

#include "schedules/registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "scheduler/error.h"
#include "scheduler/problem/config.h"
#include "schedules/adapt.h"
#include "schedules/families.h"
#include "schedules/phases.h"

namespace counterflow {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::optional<std::string> refuse_chunks(const Family& family, int chunks) {
  if (family.takes_chunks || chunks == family.default_chunks) return std::nullopt;
  std::string message =
      fmt::format("{} takes {} stage{} per rank, got {}", family.title, family.default_chunks,
                  family.default_chunks == 1 ? "" : "s", chunks);
  if (!family.sibling.empty()) message += fmt::format(" (did you mean {}?)", family.sibling);
  return message;
}

// Every stage where the family's own placement has it, whatever name the problem's goes by.
void check_placement(const Family& family, const Problem& problem) {
  const Placement& given = problem.placement;
  const Placement own(family.placement, problem.ranks(), shape_of(problem).chunks);
  if (own.replicas() != given.replicas()) {
    throw InputError(fmt::format(
        "{} needs the {} placement, the config has {}: leave pipeline.placement out, or set it to "
        "{}",
        family.name, name(family.placement), name(given.kind()), name(family.placement)));
  }
  for (int replica = 0; replica < own.replicas(); ++replica) {
    for (Stage s = 0; s < own.stages(); ++s) {
      const Rank expected = own.rank_of(s, replica);
      const Rank actual = given.rank_of(s, replica);
      if (expected == actual) continue;
      throw InputError(fmt::format(
          "{} needs the {} placement: stage {} belongs on rank {}, the config puts it on rank {}; "
          "leave pipeline.placement out, or set it to {}",
          family.name, name(family.placement), s, expected, actual, name(family.placement)));
    }
  }
}

void check_stage_count(const Family& family, const Problem& problem) {
  const int ranks = problem.ranks();
  if (problem.stages() % ranks == 0) return;
  throw InputError(fmt::format(
      "{} needs the same number of stages on every rank: {} stages do not divide by {} "
      "ranks; use {} or {} stages",
      family.name, problem.stages(), ranks, std::max(1, problem.stages() / ranks) * ranks,
      (problem.stages() / ranks + 1) * ranks));
}

void check_split(const Family& family, const Problem& problem) {
  if (problem.split_backward == SplitBackward::full && family.splits_backward) {
    throw InputError(
        fmt::format("pipeline.split_backward: false does not fit {}, which places I and W apart: "
                    "leave it out, or "
                    "choose a schedule with a full backward, such as 1f1b",
                    family.name));
  }
  if (problem.split_backward == SplitBackward::split && family.fuses_pairs) {
    throw InputError(fmt::format(
        "pipeline.split_backward: true does not fit {}, which fuses full backwards with forwards: "
        "leave it out, or choose a schedule that cuts the backward, such as zb-h1",
        family.name));
  }
}

// One pass, with whatever backward the problem has.
Schedule generate_pass(const Family& family, const Problem& problem) {
  check_stage_count(family, problem);
  const Shape shape = shape_of(problem);
  if (const auto message = refusal(family, shape)) throw InputError(*message);
  check_placement(family, problem);
  check_split(family, problem);
  const bool by_costs = family.generate_for != nullptr;
  return adapt(by_costs ? family.generate_for(problem) : family.generate(shape), problem);
}

Schedule generate_phases(const Family& family, const Problem& problem) {
  Schedule whole;
  whole.ranks.resize(static_cast<std::size_t>(problem.ranks()));
  for (const Phase& phase : problem.phases) {
    const Problem part = problem.only(phase);
    append(whole, phase.trains() ? generate_pass(family, part) : forward_pass(part), phase.first);
  }
  return whole;
}

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> all = {
      gpipe(),
      one_forward_one_backward(),
      eager_1f1b(),
      interleaved_1f1b(),
      looped_bfs(),
      zb_h1(),
      zb_h2(),
      zb_heuristic(),
      interleaved_zb(),
      zbv(),
      v_half(),
      v_min(),
      one_forward_one_backward_v(),
      dualpipe(),
      dualpipev(),
      combined_1f1b(),
      hanayo(),
      chimera(),
      group_interleaved(),
      forward_only(),
  };
  return all;
}

const Family* find_family(std::string_view name) {
  const std::string wanted = lower(name);
  for (const Family& family : families()) {
    if (family.name == wanted) return &family;
    for (const std::string_view alias : family.aliases) {
      if (lower(alias) == wanted) return &family;
    }
  }
  return nullptr;
}

std::string_view nearest_family(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Family& family : families()) {
    known.push_back(family.name);
    known.insert(known.end(), family.aliases.begin(), family.aliases.end());
  }
  // Distances are taken without regard to case, so that "zBV" is near "zbv".
  std::vector<std::string> folded;
  for (const std::string_view word : known) folded.push_back(lower(word));
  const std::vector<std::string_view> views(folded.begin(), folded.end());
  const std::string_view best = nearest(lower(name), views);
  const auto position = std::find(views.begin(), views.end(), best) - views.begin();
  return known[static_cast<std::size_t>(position)];
}

std::optional<std::string> refusal(const Family& family, const Shape& shape) {
  if (auto message = refuse_chunks(family, shape.chunks)) return message;
  return family.refuse(shape);
}

Shape shape_of(const Problem& problem) {
  return {.ranks = problem.ranks(),
          .microbatches = problem.microbatches,
          .chunks = problem.stages() / problem.ranks(),
          .group_size = problem.group_size};
}

Schedule generate(const Family& family, const Problem& problem) {
  if (family.forward_only && !problem.phases.empty() && !problem.forward_only) {
    throw InputError(
        fmt::format("{} has no backward, which pipeline.phases asks for to train; "
                    "choose a schedule with one, such as 1f1b",
                    family.name));
  }
  Schedule schedule =
      problem.phases.empty() ? generate_pass(family, problem) : generate_phases(family, problem);
  schedule = with_restores(problem, std::move(schedule));
  schedule.name = family.name;
  return schedule;
}

}  // namespace counterflow

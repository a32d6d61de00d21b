#include "scheduler/problem/config.h"

#include <cstdint>
#include <stdexcept>
#include <string>

#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/fuzz/run_program.h"
#include "tests/fuzz/targets.h"

namespace counterflow::fuzz {
namespace {

constexpr int kMostRanks = 16;
constexpr int kMostMicrobatches = 32;
constexpr int kMostChunks = 4;

// A few bytes may ask for a problem of gigabytes.
bool is_small(const Config& config) {
  return config.ranks.value <= kMostRanks && config.microbatches.value <= kMostMicrobatches &&
         (!config.chunks || config.chunks->value <= kMostChunks);
}

Placement placement_of(const Config& config, const Family& family, int chunks) {
  const int ranks = config.ranks.value;
  if (!config.placement) return {family.placement, ranks, chunks};
  const PlacementChoice& choice = config.placement->value;
  if (choice.kind == PlacementKind::list) return {ranks, choice.list};
  return {choice.kind, ranks, chunks};
}

bool only_exceeds_memory(const Diagnostics& faults) {
  for (const Diagnostic& fault : faults) {
    if (fault.rule != "memory") return false;
  }
  return true;
}

void generate_and_run(const Config& config, const Family& family) {
  const int chunks = config.chunks ? config.chunks->value : family.default_chunks;
  const Shape shape{.ranks = config.ranks.value,
                    .microbatches = config.microbatches.value,
                    .chunks = chunks,
                    .group_size = config.group_size ? config.group_size->value : 0};
  if (refusal(family, shape)) return;
  const Problem problem = make_problem(config, {.placement = placement_of(config, family, chunks),
                                                .forward_only = family.forward_only});
  const Schedule schedule = generate(family, problem);
  const Diagnostics faults = verify(problem, schedule);
  require(only_exceeds_memory(faults), "a family's order has no faults: " + schedule.name);
  if (faults.empty()) run_order(problem, schedule);
}

}  // namespace

void config(std::string_view yaml) {
  Config read;
  try {
    read = parse_config(yaml, "fuzz.yaml");
  } catch (const InputError& error) {
    require(std::string_view(error.what()).starts_with("fuzz.yaml"), "the message names the file");
    return;
  }
  const Family* family = find_family(read.schedule.value);
  if (family == nullptr || !is_small(read)) return;
  try {
    generate_and_run(read, *family);
  } catch (const InputError&) {
    return;
  } catch (const std::invalid_argument&) {
    return;  // there is no such placement
  }
}

}  // namespace counterflow::fuzz

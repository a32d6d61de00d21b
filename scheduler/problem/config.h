#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/placement.h"
#include "scheduler/problem/jitter.h"
#include "scheduler/problem/layers.h"
#include "scheduler/problem/phase.h"
#include "scheduler/problem/problem.h"

// The YAML config: read, checked, and made into a Problem. Two steps, because how many stages there
// are may depend on the schedule family, which this folder does not know.
namespace counterflow {

// A value and where it stands.
template <typename T>
struct Located {
  T value{};
  SourceLocation where;
};

// One number for all, or one for each.
template <typename T>
struct PerItem {
  std::vector<T> values;  // one value if !is_list
  bool is_list = false;
  SourceLocation where;
  std::string key;  // "stages.forward", for messages
};

struct PlacementChoice {
  PlacementKind kind = PlacementKind::loop;
  std::vector<Rank> list;  // kind list: the rank of each stage
};

// stages.recompute or stages.offload: how a stage may do without part of its activations between F
// and the backward.
struct KeepingConfig {
  SourceLocation where;
  std::optional<PerItem<Time>> time;  // of RECOMPUTE, or of a copy; of RECOMPUTE absent: of F
  double bandwidth = 0;               // of a copy, bytes a second; 0: its time is given
  PerItem<Bytes> activation;          // what is kept
  bool always_all = false;            // every stage does so in any schedule ...
  std::optional<Located<std::vector<int>>> always;  // ... or these
};

// The longest time a whole run may take in ns if nothing overlaps, and the most bytes it may move
// or hold: sums stay clear of the end of int64.
inline constexpr std::int64_t kMaxTotal = std::int64_t{1} << 62;
// stages * microbatches of one run: past this the schedule alone takes gigabytes.
inline constexpr std::int64_t kMaxStageMicrobatches = std::int64_t{1} << 25;
// Phases of one step, each of which is a problem of its own to whoever looks at them one by one.
inline constexpr std::size_t kMaxPhases = 64;
// Reductions that one stage's gradients may be cut into.
inline constexpr std::int64_t kMaxBuckets = 1024;
// Pipelines side by side: an op counts its replica, two a pipeline, in eight bits.
inline constexpr std::int64_t kMaxDataParallel = 128;
// Ranks of a latency table by rank pair, which has ranks * ranks entries.
inline constexpr std::int64_t kMaxTableRanks = 4096;

// How many computes ahead parameters may be gathered.
inline constexpr std::int64_t kMaxPrefetch = 1024;

// optimizer.fsdp: parameters in shards.
struct ShardingConfig {
  PerItem<Bytes> parameters;
  Resharding reshard = Resharding::after_use;
  int prefetch = 1;
};

// What follows the last gradient.
struct OptimizerConfig {
  std::optional<Located<int>> data_parallel;
  PerItem<Bytes> gradients;
  std::optional<Located<Bytes>> bucket;
  std::optional<PerItem<Time>> step;
  bool global_norm = false;
  Validation validation = Validation::before;
  std::optional<PerItem<Time>> validate;
  std::optional<PerItem<Bytes>> snapshot;
  std::vector<Located<TiedParameters>> tied;
  std::optional<ShardingConfig> fsdp;
  SourceLocation where;
};

// What the config says, values checked one by one (form, unit, range), list lengths not yet.
struct Config {
  std::string file;
  Located<int> ranks;
  Located<int> microbatches;  // of all phases
  std::optional<Located<std::vector<Phase>>> phases;
  Located<std::string> schedule;  // a name, or the path of a .csv file (relative to the config)
  std::optional<Located<int>> chunks;
  std::optional<Located<int>> group_size;
  std::optional<Located<PlacementChoice>> placement;
  // Groups of stages, or of layers where there are, that must share a rank.
  std::optional<Located<std::vector<std::vector<int>>>> keep_together;
  SplitBackward split_backward = SplitBackward::automatic;
  SourceLocation split_backward_where;
  MicrobatchFactors factors;  // [microbatch], empty: all 1

  // A model as layers stands in the place of the stages; they are cut when the problem is made.
  std::optional<Layers> layers;
  std::optional<Located<Cut>> layout;  // absent: cut so that the most loaded rank has least

  SourceLocation stages_where;  // of the layers, where there are
  std::optional<PerItem<Time>> forward;
  std::optional<PerItem<Time>> backward_input;
  std::optional<PerItem<Time>> backward_weight;
  std::optional<PerItem<Bytes>> activation;
  std::optional<PerItem<Bytes>> weight_activation;
  std::optional<KeepingConfig> recompute, offload;
  Located<PairCosts> overlapped;
  std::vector<std::pair<Located<int>, Located<int>>> overlapped_stages;  // to check against S
  std::optional<Located<std::vector<StageGraph::Edge>>> graph;
  std::optional<Located<std::vector<int>>> frozen;  // stage numbers

  Links links;
  std::optional<PerItem<Bytes>> message;
  std::optional<Located<Compression>> compression;
  ExecutionModel execution;
  std::optional<Jitter> jitter;
  std::optional<PerItem<Bytes>> memory_limit;
  std::optional<PerItem<std::int64_t>> activation_limit;
  std::optional<PerItem<Bytes>> static_memory;
  std::optional<OptimizerConfig> optimizer;

  // Ranks of all pipelines side by side; `ranks` are those of one.
  [[nodiscard]] int all_ranks() const {
    return optimizer && optimizer->data_parallel ? ranks.value * optimizer->data_parallel->value
                                                 : ranks.value;
  }
};

// key.path=value overrides, as given to --set, in order.
using Overrides = std::vector<std::string>;

// Reads a config file; overrides are applied to it before anything is checked. Throws InputError:
// unknown keys (with the nearest known one), missing, duplicate or wrong values, units, ranges.
[[nodiscard]] Config read_config(const std::string& path, const Overrides& overrides = {});
// The same from memory; `file` is for messages and relative paths.
[[nodiscard]] Config parse_config(std::string_view yaml, const std::string& file,
                                  const Overrides& overrides = {});

// What the schedule decides about the problem.
struct PipelineShape {
  Placement placement;
  bool forward_only = false;  // where the config has no phases, which say it themselves
};

// The problem the config describes on this placement: layers cut into stages, list lengths checked,
// everything expanded to one entry a stage, rank and microbatch. Throws InputError.
[[nodiscard]] Problem make_problem(const Config& config, const PipelineShape& shape);

// Levenshtein distance in half edits: an edit counts 2, a letter of the other case 1. O(|a| |b|).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The entry of `known` nearest to `word` by edit distance (another case counts half), the first of
// equals; empty if `known` is.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       const std::vector<std::string_view>& known);

}  // namespace counterflow

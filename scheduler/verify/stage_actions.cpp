#include <fmt/format.h>

#include <map>
#include <vector>

#include "scheduler/graph/sharded_parameters.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"
#include "scheduler/verify/verify.h"

// UNSHARD, RESHARD and REDUCE_GRAD: what a file says about whole stages, beside the microbatches.
namespace counterflow::rules {
namespace {

// What a rank's row has said so far about one of its stages.
struct StageState {
  bool uses_shards = false;  // the row unshards it somewhere
  bool unsharded = false;
  std::int64_t reduced_at = -1;
};

class RowReader {
 public:
  RowReader(std::size_t rank, const std::vector<Action>& row, Diagnostics& out)
      : rank_(static_cast<Rank>(rank)), row_(row), out_(out) {
    for (const Action& action : row) {
      if (action.op.kind == OpKind::unshard) stages_[action.op.stage].uses_shards = true;
    }
  }

  void read() {
    for (std::size_t index = 0; index < row_.size(); ++index) {
      const Action& action = row_[index];
      if (action.form == Action::Form::group || is_transfer(action.op.kind)) continue;
      for (const Op& op : {action.op, action.paired}) {
        if (op.kind != OpKind::none) read(op, static_cast<std::int64_t>(index));
      }
    }
  }

 private:
  void read(const Op& op, std::int64_t index) {
    StageState& stage = stages_[op.stage];
    switch (op.kind) {
      case OpKind::unshard:
        stage.unsharded = true;
        break;
      case OpKind::reshard:
        stage.unsharded = false;
        break;
      case OpKind::reduce_gradients:
        reduce(op, index, stage);
        break;
      default:
        compute(op, index, stage);
    }
  }

  void reduce(const Op& op, std::int64_t index, StageState& stage) {
    if (stage.reduced_at >= 0) {
      report("reduction", op, index, "reduces the same gradients a second time");
    }
    stage.reduced_at = index;
  }

  void compute(const Op& op, std::int64_t index, const StageState& stage) {
    if (reads_parameters(op) && stage.uses_shards && !stage.unsharded) {
      report("sharding", op, index,
             fmt::format("runs while stage {} is sharded; unshard it before", op.stage));
    }
    const bool makes_gradients = op.kind == OpKind::backward || op.kind == OpKind::backward_weight;
    if (makes_gradients && stage.reduced_at >= 0) {
      report("reduction", row_[static_cast<std::size_t>(stage.reduced_at)].op, stage.reduced_at,
             fmt::format("stands before {}, whose gradients it misses", to_string(op)));
    }
  }

  void report(const char* rule, const Op& op, std::int64_t index, std::string message) {
    out_.push_back(
        {.rule = rule, .rank = rank_, .index = index, .op = op, .message = std::move(message)});
  }

  Rank rank_;
  const std::vector<Action>& row_;
  Diagnostics& out_;
  std::map<Stage, StageState> stages_;
};

}  // namespace

void stage_actions(const ScheduleFile& file, Diagnostics& out) {
  for (std::size_t rank = 0; rank < file.rows.size(); ++rank) {
    RowReader(rank, file.rows[rank], out).read();
  }
}

}  // namespace counterflow::rules

namespace counterflow {

std::vector<std::string> advice(const ScheduleFile& file) {
  std::vector<std::string> result;
  for (std::size_t rank = 0; rank < file.rows.size(); ++rank) {
    std::map<Stage, bool> unsharded;
    for (const Action& action : file.rows[rank]) {
      if (action.op.kind == OpKind::unshard) unsharded[action.op.stage] = true;
      if (action.op.kind == OpKind::reshard) unsharded[action.op.stage] = false;
    }
    for (const auto& [stage, still] : unsharded) {
      if (!still) continue;
      result.push_back(fmt::format("rank {}: stage {} unsharded, never resharded", rank, stage));
    }
  }
  return result;
}

}  // namespace counterflow

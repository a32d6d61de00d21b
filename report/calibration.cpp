#include "report/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "scheduler/error.h"

namespace counterflow {
namespace {

Time median(std::vector<Time>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::string in_ns(Time time) {
  return fmt::format("{}ns", time.count());
}

// What of a fused pair would be missing: a stage that only ran beside another has no cost alone.
[[noreturn]] void only_in_pairs(int stage, std::string_view kind) {
  throw InputError(
      fmt::format("stage {} runs its {} only fused with another op, so what it takes alone is not "
                  "measured; run a schedule that fuses nothing, as 1f1b, and calibrate from that",
                  stage, kind));
}

StageCost cost_of(const Calibration& calibration, int stage) {
  const Calibration::Stage& of = calibration.stages[static_cast<std::size_t>(stage)];
  const bool fuses_forward = std::ranges::any_of(
      calibration.pairs, [&](const auto& pair) { return pair.first.first == stage; });
  const bool fuses_backward = std::ranges::any_of(
      calibration.pairs, [&](const auto& pair) { return pair.first.second == stage; });
  if (!of.forward && fuses_forward) only_in_pairs(stage, "forward");
  const bool has_backward = of.backward || of.backward_input || of.backward_weight;
  if (!has_backward && fuses_backward) only_in_pairs(stage, "backward");
  const Time whole = of.backward.value_or(Time{0});
  // Where both parts ran alone too, they say more than the whole.
  if (of.backward_input || of.backward_weight) {
    const Time rest_of_input = std::max(Time{0}, whole - of.backward_input.value_or(Time{0}));
    const Time rest_of_weight = std::max(Time{0}, whole - of.backward_weight.value_or(Time{0}));
    return {of.forward.value_or(Time{0}), of.backward_input.value_or(rest_of_weight),
            of.backward_weight.value_or(rest_of_input)};
  }
  return {of.forward.value_or(Time{0}), whole - whole / 2, whole / 2};
}

}  // namespace

Calibration calibrate(const Drawing& drawing) {
  Calibration result;
  result.stages.resize(static_cast<std::size_t>(drawing.report.stages));
  std::map<std::pair<int, OpKind>, std::vector<Time>> alone;
  std::map<std::pair<int, int>, std::vector<Time>> fused;
  for (const Lane& lane : drawing.lanes) {
    for (const Box& box : lane.boxes) {
      if (box.kind != InstructionKind::run || box.when.begin < Time{0}) continue;
      const auto ops = lane.ops_of(box);
      if (ops.size() == 2) {
        fused[{ops[0].stage, ops[1].stage}].push_back(box.when.length());
      } else if (ops.size() == 1) {
        alone[{ops[0].stage, ops[0].kind}].push_back(box.when.length());
      }
    }
  }
  for (auto& [pair, times] : fused) result.pairs[pair] = median(times);
  for (auto& [of, times] : alone) {
    Calibration::Stage& stage = result.stages[static_cast<std::size_t>(of.first)];
    switch (of.second) {
      case OpKind::forward:
        stage.forward = median(times);
        break;
      case OpKind::backward:
        stage.backward = median(times);
        break;
      case OpKind::backward_input:
        stage.backward_input = median(times);
        break;
      case OpKind::backward_weight:
        stage.backward_weight = median(times);
        break;
      default:
        break;
    }
  }
  return result;
}

std::string stages_yaml(const Calibration& calibration) {
  std::vector<std::string> forward;
  std::vector<std::string> input;
  std::vector<std::string> weight;
  for (int s = 0; s < static_cast<int>(calibration.stages.size()); ++s) {
    const StageCost cost = cost_of(calibration, s);
    forward.push_back(in_ns(cost.forward));
    input.push_back(in_ns(cost.backward_input));
    weight.push_back(in_ns(cost.backward_weight));
  }
  std::string out =
      fmt::format("stages:\n  forward: [{}]\n  backward_input: [{}]\n  backward_weight: [{}]\n",
                  fmt::join(forward, ", "), fmt::join(input, ", "), fmt::join(weight, ", "));
  if (calibration.pairs.empty()) return out;
  std::vector<std::string> pairs;
  for (const auto& [stages, time] : calibration.pairs) {
    pairs.push_back(fmt::format("[{}, {}, {}]", stages.first, stages.second, in_ns(time)));
  }
  return out + fmt::format("  overlapped: {{pairs: [{}]}}\n", fmt::join(pairs, ", "));
}

}  // namespace counterflow

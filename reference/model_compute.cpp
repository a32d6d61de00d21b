#include "reference/model_compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "scheduler/ir/schedule_file.h"

namespace counterflow::reference {
namespace {

// The elements of a buffer, which must hold as many.
std::span<float> elements(const Op& op, exec::Buffer buffer, std::size_t count, const char* what) {
  if (buffer.size() < count * sizeof(float)) {
    throw std::runtime_error(
        fmt::format("{}: the slot of its {} has {} B, the model needs {} B; compile the problem "
                    "that with_sizes_of() returns",
                    to_string(op), what, buffer.size(), count * sizeof(float)));
  }
  // Slots begin on multiples of 256 B in storage that new made.
  return {reinterpret_cast<float*>(buffer.data()), count};
}

// What is not held: a backward that needed it would show.
void let_go(const Operands<float>& operands) {
  std::ranges::fill(operands.saved, std::numeric_limits<float>::quiet_NaN());
}

// Two runs that went wrong alike: which NaN it is depends on the compiler's order of operands.
bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

std::span<float> whole(const Op& op, exec::Buffer buffer) {
  return elements(op, buffer, buffer.size() / sizeof(float), "sum");
}

}  // namespace

ModelCompute::ModelCompute(const Model<float>& model, const Problem& problem, const Sgd& sgd,
                           const Poison& poison, int consecutive)
    : model_(model),
      problem_(problem),
      sgd_(sgd),
      poison_(poison),
      consecutive_(consecutive),
      sums_(problem),
      shards_(problem, sums_) {
  for (int replica = 0; replica < problem.placement.replicas(); ++replica) {
    for (Stage stage = 0; stage < model.stages(); ++stage) {
      const std::vector<float> whole = model.initial_parameters(stage);
      std::vector<float>& own = copies_.emplace_back().parameters;
      own.assign(whole.size(), std::numeric_limits<float>::quiet_NaN());
      const Rank rank = problem.placement.rank_of(stage, replica);
      for (const Segment& s : shards_.owned(stage, rank, whole.size())) {
        std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(s.first), s.count,
                    own.begin() + static_cast<std::ptrdiff_t>(s.first));
      }
    }
  }
}

OrderedSum<float> ModelCompute::zero_gradient(const Chunk& chunk) const {
  std::vector<Microbatch> order;
  for (Microbatch mb = 0; mb < problem_.microbatches; ++mb) {
    if (problem_.replica_of(mb) == chunk.replica &&
        problem_.needs_backward_weight(chunk.stage, mb)) {
      order.push_back(mb);
    }
  }
  const bool trains = problem_.needs_backward_weight(chunk.stage);
  return {trains ? model_.parameters(chunk.stage) : 0, std::move(order)};
}

void ModelCompute::begin_step(Rank rank, int step) {
  for (const Chunk& chunk : problem_.placement.chunks_of(rank)) {
    Copy& copy = copies_[index(chunk.stage, chunk.replica)];
    begin(chunk, copy, step * consecutive_);
    copy.steps = step * consecutive_;
  }
}

void ModelCompute::begin(const Chunk& chunk, Copy& copy, int step) const {
  copy.step = step;
  copy.gradient = zero_gradient(chunk);
  copy.losses.assign(static_cast<std::size_t>(problem_.microbatches), 0);
  copy.not_finite.reset();
}

ModelCompute::Placed ModelCompute::placed(const exec::ComputeCall& call, const Op& op) const {
  Placed placed{op, call.step * consecutive_ + op.microbatch / problem_.microbatches};
  placed.op.microbatch %= problem_.microbatches;
  return placed;
}

void ModelCompute::run(const exec::ComputeCall& call) {
  if (call.op.kind == OpKind::gradient_norm) return norm(call);
  if (call.op.kind == OpKind::optimizer_step) return step(call);
  if (call.op.kind == OpKind::validate_step) return validate(call);
  if (call.op.kind == OpKind::unshard) return unshard(call);
  if (call.op.kind == OpKind::reshard) return Shards::free(call.buffers().parameters);
  one(call, call.op, call.buffers());
  if (call.paired.kind != OpKind::none) one(call, call.paired, call.paired_buffers());
}

void ModelCompute::one(const exec::ComputeCall& call, const Op& op_of_all,
                       const exec::OpBuffers& buffers) {
  const auto [op, step] = placed(call, op_of_all);
  Copy& copy = copies_[index(op.stage, op.replica)];
  if (step != copy.step && is_compute(op.kind)) begin({op.stage, op.replica}, copy, step);
  std::vector<float> gathered;
  const std::span<const float> parameters = parameters_for(op, buffers.parameters, gathered);
  switch (op.kind) {
    case OpKind::forward:
      forward(step, op, parameters, operands(op, buffers), copy);
      break;
    case OpKind::recompute: {
      const Operands<float> given = operands(op, buffers);  // its outputs left long ago
      model_.forward(op, parameters, given);
      poison_.forward(step, model_, op, given);
      break;
    }
    case OpKind::offload: {
      const Operands<float> given = operands(op, buffers);
      copy.offloaded[op.microbatch].assign(given.saved.begin(), given.saved.end());
      let_go(given);
      break;
    }
    case OpKind::reload:
      std::ranges::copy(copy.offloaded.at(op.microbatch), operands(op, buffers).saved.begin());
      copy.offloaded.erase(op.microbatch);
      break;
    case OpKind::backward:
    case OpKind::backward_input:
    case OpKind::backward_weight:
      backward(step, op, parameters, operands(op, buffers), copy);
      write_sums(call, op.stage, buffers);
      break;
    default:
      break;  // of a file, where every rank holds its weights whole
  }
}

void ModelCompute::unshard(const exec::ComputeCall& call) {
  const exec::OpBuffers buffers = call.buffers();
  if (buffers.parameters.empty()) return;
  const auto units = std::span(buffers.parameters).subspan(1);  // behind the shard
  check_units(call.op, units);
  shards_.copy_in(call.op.stage, call.rank, parameters(call.op.stage, call.op.replica), units);
}

void ModelCompute::check_units(const Op& op, std::span<const exec::Buffer> units) const {
  std::size_t size = 0;
  for (const exec::Buffer& unit : units) size += unit.size();
  if (size == model_.parameters(op.stage) * sizeof(float)) return;
  throw std::runtime_error(
      fmt::format("{}: the slots of its parameters have {} B, the model needs {} B; compile the "
                  "problem that with_sizes_of() returns",
                  to_string(op), size, model_.parameters(op.stage) * sizeof(float)));
}

std::span<const float> ModelCompute::parameters_for(const Op& op,
                                                    std::span<const exec::Buffer> units,
                                                    std::vector<float>& gathered) const {
  if (!shards_.any() || !reads_parameters(op)) return parameters(op.stage, op.replica);
  check_units(op, units);
  gathered = Shards::copy_out(units);
  return gathered;
}

void ModelCompute::forward(int step, const Op& op, std::span<const float> parameters,
                           const Operands<float>& given, Copy& copy) {
  copy.losses[static_cast<std::size_t>(op.microbatch)] = model_.forward(op, parameters, given);
  poison_.forward(step, model_, op, given);
  if (problem_.restores(op.stage, op.microbatch) &&
      problem_.keeping_of(op.stage).kind == KeepingKind::recompute) {
    let_go(given);
  }
}

void ModelCompute::backward(int step, const Op& op, std::span<const float> parameters,
                            const Operands<float>& given, Copy& copy) {
  Operands<float> operands = given;
  std::vector<float> scratch;
  // What F saved belongs to others still, or to nobody, unless W follows.
  if (op.kind == OpKind::backward || !problem_.needs_backward_weight(op.stage)) {
    scratch.assign(given.saved.begin(), given.saved.end());
    operands.saved = scratch;
  }
  if (op.kind != OpKind::backward_weight) {
    model_.input_gradient(op, parameters, operands);
    poison_.input_gradient(step, op, operands);
  }
  if (op.kind != OpKind::backward_input) {
    std::vector<float> gradient(model_.parameters(op.stage));
    model_.weight_gradient(op, operands, gradient);
    poison_.weight_gradient(step, op, std::span(gradient));
    if (!all_finite(gradient)) {
      copy.not_finite = std::min(copy.not_finite.value_or(op.microbatch), op.microbatch);
    }
    copy.gradient.add(op.microbatch, std::move(gradient));
  }
}

// The slots hold what the rank has so far.
void ModelCompute::write_sums(const exec::ComputeCall& call, Stage stage,
                              const exec::OpBuffers& buffers) {
  const auto ids = sums_.of(stage);
  for (std::size_t k = 0; k < buffers.sums.size(); ++k) {
    if (buffers.sums[k].empty()) continue;  // nobody asks for it
    const auto share = share_of_sum(
        problem_, sums_, ids[k], call.rank, [&](const Chunk& chunk) -> std::span<const float> {
          return copies_[index(chunk.stage, chunk.replica)].gradient.value();
        });
    std::ranges::copy(share, elements(call.op, buffers.sums[k], share.size(), "sum").begin());
  }
}

void ModelCompute::norm(const exec::ComputeCall& call) {
  const std::vector<GradientSums::Id> ids = sums_.on(problem_, call.rank);
  const exec::OpBuffers buffers = call.buffers();
  std::vector<std::span<const float>> values;
  for (std::size_t k = 0; k < ids.size(); ++k) values.emplace_back(whole(call.op, buffers.sums[k]));
  whole(call.op, buffers.sums.back()).front() =
      share_of_norm(sums_, shards_, ids, values, call.rank);
}

void ModelCompute::read_gradient(const exec::ComputeCall& call, const exec::OpBuffers& buffers,
                                 Copy& copy) const {
  copy.reduced.clear();
  for (std::size_t k = 0; k < sums_.of(call.op.stage).size(); ++k) {
    const auto sum = whole(call.op, buffers.sums[k]);
    copy.reduced.insert(copy.reduced.end(), sum.begin(), sum.end());
  }
}

void ModelCompute::step_or_skip(const Op& op, Copy& copy, std::optional<float> squares) const {
  const Rank rank = problem_.placement.rank_of(op.stage, op.replica);
  const auto own = shards_.owned(op.stage, rank, copy.reduced.size());
  const bool skips = squares ? !std::isfinite(*squares) : !all_finite(copy.reduced, own);
  if (!skips) {
    sgd_.step(copy.parameters, copy.reduced, squares ? sgd_.factor(*squares) : 1, own);
  }
  if (skips || copy.not_finite) {
    copy.skips.push_back({copy.steps - 1, skips, copy.not_finite});
  }
}

void ModelCompute::step(const exec::ComputeCall& call) {
  const exec::OpBuffers buffers = call.buffers();
  Copy& copy = copies_[index(call.op.stage, call.op.replica)];
  read_gradient(call, buffers, copy);
  ++copy.steps;
  if (problem_.optimizer->validates()) {
    const std::size_t count = copy.parameters.size();
    std::ranges::copy(copy.parameters,
                      elements(call.op, buffers.sums.back(), count, "snapshot").begin());
    sgd_.step(copy.parameters, copy.reduced, 1);
  } else if (problem_.optimizer->global_norm) {
    step_or_skip(call.op, copy, whole(call.op, buffers.sums.back()).front());
  } else {
    step_or_skip(call.op, copy, std::nullopt);
  }
}

// A step that the norm leaves as it is stands; any other is made anew from where it began, so that
// its bits are those of a step that waited.
void ModelCompute::validate(const exec::ComputeCall& call) {
  const exec::OpBuffers buffers = call.buffers();
  Copy& copy = copies_[index(call.op.stage, call.op.replica)];
  const std::size_t sums = sums_.of(call.op.stage).size();
  const float squares = whole(call.op, buffers.sums[sums]).front();
  if (std::isfinite(squares) && sgd_.factor(squares) == 1) return;
  const std::size_t count = copy.parameters.size();
  const auto snapshot = elements(call.op, buffers.sums[sums + 1], count, "snapshot");
  copy.parameters.assign(snapshot.begin(), snapshot.end());
  read_gradient(call, buffers, copy);
  step_or_skip(call.op, copy, squares);
}

std::vector<SkippedStep> ModelCompute::skipped() const {
  std::map<int, SkippedStep> steps;
  const auto stages = static_cast<std::size_t>(model_.stages());
  for (std::size_t c = 0; c < copies_.size(); ++c) {
    for (const Skip& skip : copies_[c].skips) {
      if (!skip.skips) continue;
      SkippedStep& all = steps[skip.step];
      all.step = skip.step;
      all.whole = problem_.optimizer->global_norm;
      // Other copies do as the first, but for shards without a norm.
      const auto stage = static_cast<Stage>(c % stages);
      if (std::ranges::find(all.stages, stage) == all.stages.end()) all.stages.push_back(stage);
    }
  }
  for (std::size_t c = 0; c < copies_.size(); ++c) {
    const auto stage = static_cast<Stage>(c % stages);
    const Rank rank = problem_.placement.rank_of(stage, static_cast<int>(c / stages));
    for (const Skip& skip : copies_[c].skips) {
      const auto all = steps.find(skip.step);
      if (!skip.first || all == steps.end()) continue;
      const NotFinite own{stage, *skip.first, rank};
      std::optional<NotFinite>& first = all->second.first;
      if (!first || own.before(*first)) first = own;
    }
  }
  std::vector<SkippedStep> list;
  for (auto& [step, skipped] : steps) {
    std::ranges::sort(skipped.stages);
    list.push_back(std::move(skipped));
  }
  return list;
}

Operands<float> ModelCompute::operands(const Op& op, const exec::OpBuffers& buffers) const {
  Operands<float> found;
  // Everything that flows over an edge has the size of the lower stage's output.
  const auto before = problem_.graph.predecessors(op.stage);
  const std::size_t from = before.empty() ? 0 : model_.output(before.front());
  const std::size_t to = model_.output(op.stage);
  for (const exec::Buffer& buffer : buffers.inputs) {
    found.inputs.emplace_back(elements(op, buffer, from, "input"));
  }
  for (const exec::Buffer& buffer : buffers.output_gradients) {
    found.output_gradients.emplace_back(elements(op, buffer, to, "output gradient"));
  }
  for (const exec::Buffer& buffer : buffers.outputs) {
    found.outputs.emplace_back(
        elements(op, buffer, op.kind == OpKind::forward ? to : from, "output"));
  }
  found.saved = elements(op, buffers.saved, model_.saved(op.stage), "saved activations");
  return found;
}

CopyResult ModelCompute::result_of(const Chunk& chunk) const {
  const Copy& copy = copies_[index(chunk.stage, chunk.replica)];
  if (!copy.gradient.complete()) {
    throw std::logic_error(
        fmt::format("stage {} has not had all its weight gradients", chunk.stage));
  }
  const auto value =
      problem_.optimizer ? std::span<const float>(copy.reduced) : copy.gradient.value();
  return {copy.losses, {value.begin(), value.end()}, copy.parameters};
}

std::vector<CopyResult> ModelCompute::results() const {
  std::vector<CopyResult> copies;
  for (int replica = 0; replica < problem_.placement.replicas(); ++replica) {
    for (Stage stage = 0; stage < model_.stages(); ++stage) {
      copies.push_back(result_of({stage, static_cast<std::uint8_t>(replica)}));
    }
  }
  return copies;
}

StepResult<float> ModelCompute::result() const {
  return combine(problem_, results());
}

Parameters<float> ModelCompute::parameters() const {
  return combine_parameters(problem_, results());
}

Parameters<float> combine_parameters(const Problem& problem, std::span<const CopyResult> copies) {
  const GradientSums sums(problem);
  const Shards shards(problem, sums);
  Parameters<float> all;
  const auto stages = static_cast<std::size_t>(problem.stages());
  for (std::size_t s = 0; s < stages; ++s) {
    all.push_back(shards.assembled(static_cast<Stage>(s), [&](int replica) {
      return std::span<const float>(
          copies[static_cast<std::size_t>(replica) * stages + s].parameters);
    }));
  }
  return all;
}

StepResult<float> combine(const Problem& problem, std::span<const CopyResult> copies) {
  StepResult<float> result;
  const GradientSums sums(problem);
  const Shards shards(problem, sums);
  const auto stages = static_cast<std::size_t>(problem.stages());
  result.losses.resize(static_cast<std::size_t>(problem.microbatches));
  result.gradients.resize(stages);
  for (std::size_t c = 0; c < copies.size(); ++c) {
    const CopyResult& copy = copies[c];
    for (std::size_t mb = 0; mb < copy.losses.size(); ++mb) result.losses[mb] += copy.losses[mb];
    std::vector<float>& sum = result.gradients[c % stages];
    if (shards.any()) {
      if (c >= stages || copy.gradient.empty()) continue;
      sum = shards.assembled(static_cast<Stage>(c), [&](int replica) {
        return std::span<const float>(
            copies[static_cast<std::size_t>(replica) * stages + c].gradient);
      });
    } else if (c < stages) {
      sum = copy.gradient;
    } else if (!problem.optimizer) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += copy.gradient[i];
    } else if (!same_bits(sum, copy.gradient)) {
      throw std::logic_error(fmt::format("the copies of stage {} differ", c % stages));
    }
  }
  return result;
}

}  // namespace counterflow::reference

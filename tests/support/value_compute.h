#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "executor/compute.h"
#include "scheduler/graph/channels.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

namespace counterflow::testing {

// A compute whose results say what they were made from: every output is a hash of the op's stage,
// kind, microbatch and of everything it read. A run is right iff it ends with the same sums and the
// same hash of each op as expected_values() finds by recursion. Slots must hold 16 bytes.
class ValueCompute final : public exec::Compute {
 public:
  using Word = std::uint64_t;
  using Key = std::tuple<OpKind, int, int, Microbatch>;

  void run(const exec::ComputeCall& call) override {
    if (!has_microbatch(call.op.kind)) return whole_stage(call);
    one(call.op, call.buffers());
    if (call.paired.kind != OpKind::none) one(call.paired, call.paired_buffers());
  }
  [[nodiscard]] const std::map<Key, Word>& results() const { return results_; }

  static Word mix(Word a, Word b) {
    a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6U) + (a >> 2U);
    a *= 0xff51afd7ed558ccdULL;
    return a ^ (a >> 33U);
  }
  static Word name_of(const Op& op) {
    return mix(mix(static_cast<Word>(op.kind), op.stage),
               mix(op.replica, static_cast<Word>(op.microbatch)));
  }
  static Key key(const Op& op) { return {op.kind, op.stage, op.replica, op.microbatch}; }

 private:
  static Word read(const exec::Buffer& buffer) {
    Word word = 0;
    if (buffer.size() >= sizeof word) std::memcpy(&word, buffer.data(), sizeof word);
    return word;
  }
  static void write(const exec::Buffer& buffer, Word word) {
    if (buffer.size() >= sizeof word) std::memcpy(buffer.data(), &word, sizeof word);
  }

  // UNSHARD puts in every place of a unit what this rank would have there, which the gather then
  // replaces but for its own part; RESHARD what is of nobody. Norms and steps are not followed.
  static void whole_stage(const exec::ComputeCall& call) {
    const exec::OpBuffers buffers = call.buffers();
    const bool is_unshard = call.op.kind == OpKind::unshard;
    if (!is_unshard && call.op.kind != OpKind::reshard) return;
    for (std::size_t k = is_unshard ? 1 : 0; k < buffers.parameters.size(); ++k) {
      const exec::Buffer& unit = buffers.parameters[k];
      for (std::size_t at = 0; at + sizeof(Word) <= unit.size(); at += sizeof(Word)) {
        Word word = is_unshard ? mix(call.op.stage, k) : 0;
        if (is_unshard) word = mix(word, mix(static_cast<Word>(call.rank), at));
        std::memcpy(unit.data() + at, &word, sizeof word);
      }
    }
  }

  void one(const Op& op, const exec::OpBuffers& buffers) {
    Word value = name_of(op);
    for (const auto& unit : buffers.parameters) {
      for (std::size_t at = 0; at + sizeof(Word) <= unit.size(); at += sizeof(Word)) {
        value = mix(value, read(unit.subspan(at)));
      }
    }
    for (const auto& input : buffers.inputs) value = mix(value, read(input));
    for (const auto& gradient : buffers.output_gradients) value = mix(value, read(gradient));
    if (op.kind != OpKind::forward) value = mix(value, read(buffers.saved));
    for (std::size_t k = 0; k < buffers.outputs.size(); ++k) {
      write(buffers.outputs[k], mix(value, k));
    }
    if (op.kind == OpKind::forward || op.kind == OpKind::backward_input ||
        restores_or_stores(op.kind)) {
      write(buffers.saved, value);
    }
    const std::scoped_lock lock(mutex_);
    results_[key(op)] = value;
  }

  std::mutex mutex_;
  std::map<Key, Word> results_;
};

// What each op of the problem must compute, whatever the schedule: straight from the stage graph.
class ExpectedValues {
 public:
  // The schedule says which backwards are whole.
  ExpectedValues(const Problem& problem, const Schedule& schedule)
      : problem_(problem), channels_(problem) {
    for (const auto& order : schedule.ranks) {
      for (const Slot& slot : order) {
        for (const Op& op : {slot.first, slot.second}) {
          if (op.kind == OpKind::backward) full_.insert(ValueCompute::key(op));
        }
      }
    }
  }

  ValueCompute::Word of(const Op& op) {
    const auto [entry, is_new] = known_.try_emplace(ValueCompute::key(op), 0);
    if (!is_new) return entry->second;
    const ValueCompute::Word value = compute(op);
    return known_[ValueCompute::key(op)] = value;
  }

 private:
  using Word = ValueCompute::Word;

  Word compute(const Op& op) {
    const auto as = [&](OpKind kind) { return Op{kind, op.replica, op.stage, op.microbatch}; };
    Word value = ValueCompute::name_of(op);
    const bool copies = op.kind == OpKind::offload || op.kind == OpKind::reload;
    for (const Channels::Id id : channels_.inputs(as(OpKind::forward))) {
      if (!copies) value = ValueCompute::mix(value, message(id, op));
    }
    if (op.kind == OpKind::forward) return value;
    if (restores_or_stores(op.kind)) {
      const OpKind before = op.kind == OpKind::reload ? OpKind::offload : OpKind::forward;
      return ValueCompute::mix(value, of(as(before)));
    }
    for (const Channels::Id id : channels_.inputs(as(OpKind::backward_input))) {
      value = ValueCompute::mix(value, message(id, op));
    }
    // I leaves its own value for W in place of F's, where W follows.
    const bool after_input =
        op.kind == OpKind::backward_weight && problem_.needs_backward_input(op.stage);
    const OpKind saver = after_input ? OpKind::backward_input
                         : problem_.restores(op.stage, op.microbatch)
                             ? problem_.keeping_of(op.stage).restore_kind()
                             : OpKind::forward;
    return ValueCompute::mix(value, of(as(saver)));
  }

  // What flows on a channel: output k of the op at its other end.
  Word message(Channels::Id id, const Op& at) {
    const auto& channel = channels_[id];
    const bool forward = channel.kind == PayloadKind::activation;
    const OpKind kind = forward ? OpKind::forward : OpKind::backward_input;
    const Op maker{kind, at.replica, static_cast<std::uint16_t>(channel.from), at.microbatch};
    const auto& outputs = channels_.outputs(maker);
    const auto k = std::find(outputs.begin(), outputs.end(), id) - outputs.begin();
    return ValueCompute::mix(of(made_by(maker)), static_cast<Word>(k));
  }

  // The op of the schedule that makes it: I where the schedule splits this backward, else B.
  [[nodiscard]] Op made_by(const Op& maker) const {
    if (maker.kind == OpKind::forward) return maker;
    Op full = maker;
    full.kind = OpKind::backward;
    return full_.count(ValueCompute::key(full)) > 0 ? full : maker;
  }

  const Problem& problem_;
  const Channels channels_;
  std::map<ValueCompute::Key, Word> known_;
  std::set<ValueCompute::Key> full_;
};

}  // namespace counterflow::testing

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/happens_before.h"
#include "scheduler/graph/recordings.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/by_rank.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// One rank in issue order. The parameters of a copy of a stage are a value that every op of a step
// reads, STEP replaces and VALIDATE amends.
class ParameterUses {
 public:
  ParameterUses(const Problem& problem, const RankProgram& rank, std::size_t number,
                const Recordings& recordings, Diagnostics& out)
      : problem_(problem),
        number_(static_cast<Rank>(number)),
        rank_(rank),
        recordings_(recordings),
        out_(out),
        order_(rank) {}

  void check() {
    for (at_ = 0; at_ < rank_.instructions.size(); ++at_) {
      const Instruction& instruction = rank_.instructions[at_];
      order_.begin(at_, recordings_);
      if (instruction.kind == InstructionKind::run) {
        for (const Op& op : {instruction.op, instruction.paired}) check(op);
      }
      order_.finish();
    }
  }

 private:
  struct Copy {
    int steps = 0;        // STEPs so far
    int validations = 0;  // VALIDATEs so far
    std::uint32_t writer = kNone;
    std::vector<std::uint32_t> readers{};  // since, the last of each stream
  };

  void check(const Op& op) {
    Copy& copy = copies_[{op.stage, op.replica}];
    switch (op.kind) {
      case OpKind::forward:
      case OpKind::recompute:
      case OpKind::backward:
      case OpKind::backward_input:
      case OpKind::backward_weight:
        return read(op, copy);
      case OpKind::optimizer_step:
        expect(op, copy.validations == copy.steps || !validates(), "comes before the VALIDATE",
               copy.steps);
        ++copy.steps;
        return write(copy);
      case OpKind::validate_step:
        expect(op, copy.steps == copy.validations + 1, "does not follow the STEP",
               copy.validations + 1);
        ++copy.validations;
        return write(copy);
      default:
        return;
    }
  }

  // What a step needs is there: all STEPs before it, and of the last its VALIDATE.
  void read(const Op& op, Copy& copy) {
    const int step = problem_.step_of(op.microbatch);
    if (problem_.needs_backward_weight(op.stage)) {
      expect(op, copy.steps == step,
             copy.steps < step ? "comes before the STEP" : "comes after the STEP",
             copy.steps < step ? step : step + 1);
      expect(op, copy.validations >= step || !validates(), "comes before the VALIDATE", step);
    }
    follow(op, copy.writer);
    std::erase_if(copy.readers, [&](std::uint32_t earlier) {
      return rank_.instructions[earlier].stream == rank_.instructions[at_].stream;
    });
    copy.readers.push_back(at_);
  }

  void write(Copy& copy) {
    const Op& op = rank_.instructions[at_].op;
    follow(op, copy.writer);
    for (const std::uint32_t reader : copy.readers) follow(op, reader);
    copy.writer = at_;
    copy.readers.clear();
  }

  void follow(const Op& op, std::uint32_t earlier) {
    if (earlier == kNone || earlier == at_ || order_.follows(earlier)) return;
    report(op, fmt::format("may begin before {} has ended, and the parameters of the stage change "
                           "with it: let it wait for an event of that",
                           to_string(rank_.instructions[earlier].op)));
  }

  void expect(const Op& op, bool holds, const char* what, int number) {
    if (!holds) {
      report(op, fmt::format("{} that ends step {} of its stage", what, number - 1));
    }
  }

  [[nodiscard]] bool validates() const { return problem_.optimizer->validates(); }

  void report(const Op& op, std::string message) {
    out_.push_back(
        {.rule = "step", .rank = number_, .index = at_, .op = op, .message = std::move(message)});
  }

  const Problem& problem_;
  Rank number_;
  const RankProgram& rank_;
  const Recordings& recordings_;
  Diagnostics& out_;
  HappensBefore order_;
  std::map<std::pair<std::uint16_t, std::uint8_t>, Copy> copies_;  // of stages
  std::uint32_t at_ = 0;
};

}  // namespace

void parameters(const Problem& problem, const Program& program, const References& references,
                Diagnostics& out) {
  if (!problem.optimizer) return;
  by_rank(program, out, [&](std::size_t rank, Diagnostics& found) {
    ParameterUses(problem, program.ranks[rank], rank, references.recordings[rank], found).check();
  });
}

}  // namespace counterflow::rules

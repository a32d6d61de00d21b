#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/by_rank.h"
#include "scheduler/verify/rules.h"

// A program that comes from elsewhere may point anywhere; every other rule follows its indices.
namespace counterflow::rules {
namespace {

constexpr const char* kNoSlot = "uses a buffer slot that is not there";

bool within(Range range, std::size_t size) {
  return range.first <= size && range.count <= size - range.first;
}

class RankForm {
 public:
  RankForm(const Problem* problem, const Program& program, std::size_t rank, Diagnostics& out)
      : problem_(problem),
        program_(program),
        rank_(rank),
        list_(program.ranks[rank]),
        out_(out),
        next_generation_(list_.events),
        transfer_owned_(list_.transfers.size()),
        collective_owned_(list_.collectives.size()) {
    for (const Communicator& communicator : program.communicators) {
      is_member_.push_back(
          std::ranges::binary_search(communicator.members, static_cast<Rank>(rank)));
    }
  }

  void check() {
    const std::size_t before = out_.size();
    for (std::uint32_t i = 0; i < list_.instructions.size(); ++i) {
      const Instruction& instruction = list_.instructions[i];
      about_ = instruction.op;
      std::string fault = fault_of(instruction);
      if (fault.empty()) fault = fault_of_records(instruction);
      if (!fault.empty()) report(i, std::move(fault));
    }
    if (out_.size() > before) return;
    for (const auto* owned : {&transfer_owned_, &collective_owned_}) {
      if (std::ranges::find(*owned, false) == owned->end()) continue;
      report(std::nullopt, "holds a transfer or collective that no instruction issues");
    }
  }

 private:
  std::string fault_of(const Instruction& instruction) {
    if (instruction.stream >= list_.streams.size()) {
      return fmt::format("is on stream {} of {}", instruction.stream, list_.streams.size());
    }
    if (!within(instruction.waits, list_.waits.size()) ||
        (instruction.kind == InstructionKind::run &&
         !within(instruction.body, list_.accesses.size()))) {
      return "points outside the tables of its rank";
    }
    for (const Access& access : list_.accesses_of(instruction)) {
      if (access.slot >= list_.slots.size()) return kNoSlot;
    }
    switch (instruction.kind) {
      case InstructionKind::run:
        return fault_of_kernel(instruction);
      case InstructionKind::transfer:
        return fault_of_transfers(instruction);
      case InstructionKind::collective:
        return fault_of_collective(instruction);
      case InstructionKind::step_end:
        return "";
    }
    return "is of no known kind";
  }

  [[nodiscard]] std::string fault_of_kernel(const Instruction& instruction) const {
    if (instruction.kernel >= program_.kernels.size()) return "runs a kernel that is not there";
    if (const Op& whole = instruction.op; problem_ != nullptr && whole.kind != OpKind::none &&
                                          !has_microbatch(whole.kind) &&
                                          whole.stage >= problem_->stages()) {
      return fmt::format("is of stage {}; the problem has stages 0..{}", whole.stage,
                         problem_->stages() - 1);
    }
    const Kernel& kernel = program_.kernels[instruction.kernel];
    const auto is_of = [](const Op& op, OpKind kind, std::uint16_t stage, std::uint8_t replica) {
      return op.kind == kind && op.stage == stage && op.replica == replica;
    };
    if (is_of(instruction.op, kernel.kind, kernel.stage, kernel.replica) &&
        is_of(instruction.paired, kernel.paired_kind, kernel.paired_stage, kernel.paired_replica)) {
      return "";
    }
    return "runs the kernel of another op";
  }

  std::string fault_of_transfers(const Instruction& instruction) {
    if (instruction.body.count == 0) return "is a group without transfers";
    if (!within(instruction.body, list_.transfers.size())) {
      return "points outside the tables of its rank";
    }
    for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
      const std::uint32_t t = instruction.body.first + k;
      std::string fault = fault_of_end(list_.transfers[t], instruction.communicator);
      if (transfer_owned_[t]) fault = "issues a transfer that another instruction issues too";
      transfer_owned_[t] = true;
      if (fault.empty()) continue;
      about_ = op_of(instruction, list_.transfers[t]);
      return fault;
    }
    return "";
  }

  [[nodiscard]] std::string fault_of_end(const Transfer& end, CommunicatorId communicator) const {
    if (end.peer >= program_.ranks.size()) {
      return fmt::format("exchanges data with rank {}; there are 0..{}", end.peer,
                         program_.ranks.size() - 1);
    }
    if (end.slot != kNone && end.slot >= list_.slots.size()) return kNoSlot;
    if (problem_ != nullptr && !is_of(*problem_, end.payload)) {
      return "carries a payload that the problem does not have";
    }
    return fault_of_membership(communicator);
  }

  [[nodiscard]] static bool is_of(const Problem& problem, const Payload& payload) {
    const int stages = problem.stages();
    return payload.from < stages && payload.to < stages && payload.microbatch >= 0 &&
           payload.microbatch < problem.microbatches &&
           payload.replica == problem.replica_of(payload.microbatch);
  }

  std::string fault_of_collective(const Instruction& instruction) {
    if (instruction.body.count != 1) return "issues no collective, or several";
    const std::uint32_t c = instruction.body.first;
    if (c >= list_.collectives.size()) return "points outside the tables of its rank";
    const std::uint32_t slot = list_.collectives[c].slot;
    if (slot != kNone && slot >= list_.slots.size()) return kNoSlot;
    if (collective_owned_[c]) return "issues a collective that another instruction issues too";
    collective_owned_[c] = true;
    return fault_of_membership(instruction.communicator);
  }

  [[nodiscard]] std::string fault_of_membership(CommunicatorId id) const {
    if (id >= program_.communicators.size()) return "is on no communicator";
    if (is_member_[id]) return "";
    return fmt::format("is on communicator {}, which rank {} is no member of", id, rank_);
  }

  // The recordings of an event are numbered in issue order.
  std::string fault_of_records(const Instruction& instruction) {
    if (instruction.records == kNone) return "";
    if (instruction.records >= list_.events) return "records an event that is not there";
    std::uint32_t& next = next_generation_[instruction.records];
    if (instruction.generation < next) return "records an event twice as the same generation";
    next = instruction.generation + 1;
    return "";
  }

  void report(std::optional<std::int64_t> index, std::string message) {
    out_.push_back({.rule = "form",
                    .rank = static_cast<Rank>(rank_),
                    .index = index,
                    .op = index ? about_ : Op{},
                    .message = std::move(message)});
  }

  const Problem* problem_;  // none: what only it can tell is not asked
  const Program& program_;
  std::size_t rank_;
  const RankProgram& list_;
  Diagnostics& out_;
  Op about_;                                    // what a fault of the instruction at hand is about
  std::vector<bool> is_member_;                 // [communicator]
  std::vector<std::uint32_t> next_generation_;  // [event]
  std::vector<bool> transfer_owned_, collective_owned_;  // does an instruction issue it?
};

void check_form(const Problem* problem, const Program& program, Diagnostics& out) {
  for (const Communicator& communicator : program.communicators) {
    const auto& members = communicator.members;
    if (std::ranges::adjacent_find(members, std::greater_equal<>()) == members.end()) continue;
    out.push_back({.rule = "form",
                   .rank = std::nullopt,
                   .index = std::nullopt,
                   .op = {},
                   .message = "the members of a communicator must ascend"});
    return;
  }
  by_rank(program, out, [&](std::size_t rank, Diagnostics& found) {
    RankForm(problem, program, rank, found).check();
  });
}

}  // namespace

void form(const Program& program, Diagnostics& out) {
  check_form(nullptr, program, out);
}

void form(const Problem& problem, const Program& program, Diagnostics& out) {
  if (program.ranks.size() != static_cast<std::size_t>(problem.ranks())) {
    out.push_back({.rule = "form",
                   .rank = std::nullopt,
                   .index = std::nullopt,
                   .op = {},
                   .message = fmt::format("the program has {} ranks; the problem has {}",
                                          program.ranks.size(), problem.ranks())});
    return;
  }
  check_form(&problem, program, out);
}

}  // namespace counterflow::rules

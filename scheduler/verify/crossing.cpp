#include <fmt/format.h>

#include <string>

#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

// Where a rank's next and previous rank are the same, activations and gradients go to the same
// peer. On one channel without tags, whoever orders them differently at its two ends takes one for
// the other.
namespace counterflow::rules {
namespace {

// "position 3, 0SEND_F1".
std::string place(const Program& program, const Matching& meets, Matching::End end) {
  std::string text = fmt::format("position {}, ", meets.instruction(end.rank, end.transfer));
  append_text(text, {&program.ranks[end.rank].transfers[end.transfer], 1});
  return text;
}

}  // namespace

void crossing(const Program& program, const References& references, Matching::End send,
              Diagnostics& out) {
  const Matching& meets = references.meets;
  const Matching::End receive = meets.partner(send.rank, send.transfer);
  const RankProgram& rank = program.ranks[send.rank];
  const std::uint32_t index = meets.instruction(send.rank, send.transfer);
  const bool is_gradient = rank.transfers[send.transfer].payload.kind == PayloadKind::gradient;
  out.push_back(
      {.rule = "crossing",
       .rank = static_cast<Rank>(send.rank),
       .index = index,
       .op = op_of(rank.instructions[index], rank.transfers[send.transfer]),
       .message = fmt::format(
           "is message {} from rank {} ({}) to rank {}, which takes it for {} ({}): activations "
           "and gradients share this channel, in different orders at its two ends; give each "
           "direction a communicator of its own",
           meets.sequence(send.rank, send.transfer), send.rank, place(program, meets, send),
           receive.rank, is_gradient ? "an activation" : "a gradient",
           place(program, meets, receive))});
}

}  // namespace counterflow::rules

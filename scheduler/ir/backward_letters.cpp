#include "scheduler/ir/backward_letters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "scheduler/error.h"

namespace counterflow {
namespace {

using Mentions = std::span<const BackwardMention>;

const Op& op_at(const ScheduleFile& file, const BackwardMention& mention) {
  const Action& action = file.rows[static_cast<std::size_t>(mention.row - 1)][mention.action];
  return mention.fused ? action.paired : action.op;
}

// The op as the file writes it: to_string() has no BW.
std::string written(const ScheduleFile& file, const BackwardMention& mention) {
  static constexpr std::array<std::string_view, 4> kLetters = {"B", "BW", "I", "W"};
  const Op& op = op_at(file, mention);
  return fmt::format("{}{}{}{}", replica_prefix(op.replica), op.stage,
                     kLetters[static_cast<std::size_t>(mention.letter)], op.microbatch);
}

[[noreturn]] void refuse(const ScheduleFile& file, const BackwardMention* a,
                         const BackwardMention* b, std::string_view why) {
  if (std::tie(a->row, a->cell) > std::tie(b->row, b->cell)) std::swap(a, b);
  throw InputError(
      {file.name, b->row, b->cell},
      fmt::format("\"{}\" and, in line {} cell {}, \"{}\" mix two dialects for one microbatch: {}; "
                  "write I and W for a backward in two parts, or B alone for a full one",
                  written(file, *b), a->row, a->cell, written(file, *a), why));
}

// The mentions of one microbatch of one stage copy. True: its B is the input gradient.
bool is_split(const ScheduleFile& file, Mentions mentions) {
  std::array<const BackwardMention*, 4> first = {};
  for (const BackwardMention& mention : mentions) {
    auto& entry = first[static_cast<std::size_t>(mention.letter)];
    if (entry == nullptr) entry = &mention;
  }
  const auto [b, bw, i, w] = first;
  if (bw != nullptr && w != nullptr) refuse(file, bw, w, "BW holds the weight gradient already");
  if (bw != nullptr && b != nullptr) refuse(file, bw, b, "beside BW, B is the input gradient");
  if (b != nullptr && w != nullptr && i != nullptr) {
    refuse(file, b, i, "beside W, both B and I are the input gradient");
  }
  return b != nullptr && w != nullptr;
}

}  // namespace

BackwardMention mention_of(const Op& op, BackwardLetter letter) {
  BackwardMention mention;
  mention.microbatch = (std::uint64_t{op.stage} << 40U) | (std::uint64_t{op.replica} << 32U) |
                       static_cast<std::uint32_t>(op.microbatch);
  mention.letter = letter;
  return mention;
}

void resolve_backward_letters(ScheduleFile& file, std::vector<BackwardMention> mentions) {
  std::ranges::sort(mentions, {}, [](const BackwardMention& m) {
    return std::tuple(m.microbatch, m.row, m.cell);
  });
  for (auto begin = mentions.cbegin(); begin != mentions.cend();) {
    const auto end = std::find_if(begin, mentions.cend(), [&](const BackwardMention& m) {
      return m.microbatch != begin->microbatch;
    });
    const Mentions of_one(begin, end);
    begin = end;
    if (!is_split(file, of_one)) continue;
    for (const BackwardMention& mention : of_one) {
      if (mention.letter != BackwardLetter::b) continue;
      Action& action = file.rows[static_cast<std::size_t>(mention.row - 1)][mention.action];
      (mention.fused ? action.paired : action.op).kind = OpKind::backward_input;
    }
  }
}

}  // namespace counterflow

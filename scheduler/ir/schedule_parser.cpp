#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/ir/backward_letters.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kPairName = "OVERLAP_F_B";
constexpr std::size_t kMaxQuoted = 40;

constexpr std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Text of the file for a message: short, and printable whatever is in it.
std::string shortened(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMaxQuoted)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > kMaxQuoted) out += "...";
  return out;
}

std::string quoted(std::string_view text) {
  return '"' + shortened(text) + '"';
}

// Takes the text up to the next `separator`, which is dropped, off the front of `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return taken;
}

struct Word {
  std::string_view text;
  OpKind kind = OpKind::none;
  std::optional<BackwardLetter> letter;
};

std::optional<Word> word_named(std::string_view text) {
  if (text == "B") return Word{text, OpKind::backward, BackwardLetter::b};
  if (text == "BW") return Word{text, OpKind::backward, BackwardLetter::bw};
  if (text == "I") return Word{text, OpKind::backward_input, BackwardLetter::i};
  if (text == "W") return Word{text, OpKind::backward_weight, BackwardLetter::w};
  for (int i = static_cast<int>(OpKind::forward); i <= static_cast<int>(kLastOpKind); ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (text == token(kind)) return Word{text, kind, {}};
  }
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : rest_(text) { file_.name = name; }

  ScheduleFile parse() {
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
    while (!rest_.empty()) {
      ++line_;
      std::string_view line = take_until(rest_, '\n');
      if (line.ends_with('\r')) line.remove_suffix(1);
      // A blank line is a rank without actions, unless no other line follows.
      if (!trimmed(line).empty()) parse_row(line);
    }
    if (file_.rows.empty()) {
      throw InputError({file_.name, 0, 0},
                       "the file holds no rank; write one row of actions a rank");
    }
    resolve_backward_letters(file_, std::move(mentions_));
    return std::move(file_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what, std::string_view why) const {
    throw InputError({file_.name, line_, cell_}, fmt::format("{}: {}", quoted(what), why));
  }

  void parse_row(std::string_view line) {
    if (line_ > kMaxStages) {
      throw InputError({file_.name, line_, 0},
                       fmt::format("more than {} rows; one row is one rank", kMaxStages));
    }
    file_.rows.resize(static_cast<std::size_t>(line_));
    auto& row = file_.rows.back();
    row.reserve(1 + static_cast<std::size_t>(std::ranges::count(line, ',')));
    cell_ = 0;
    while (!line.empty()) {
      ++cell_;
      const std::string_view cell = unquoted(trimmed(take_until(line, ',')));
      if (!cell.empty()) row.push_back(parse_action(cell));
    }
  }

  std::string_view unquoted(std::string_view cell) const {
    if (!cell.starts_with('"')) return cell;
    const std::string_view inside = cell.substr(1, cell.find('"', 1) - 1);
    if (inside.size() + 2 != cell.size()) {
      refuse(cell, "a quoted cell holds one action between two quotes; leave the quotes out");
    }
    return trimmed(inside);
  }

  Action parse_action(std::string_view cell) {
    if (cell.front() == '(') return parse_pair(cell);
    if (cell.front() == '[') return parse_group(cell);
    Action action;
    const auto [op, other] = parse_with_other_end(cell);
    action.op = op;
    if (other != kAnyStage) action.others = {other};
    file_.has_communication |= is_transfer(action.op.kind);
    return action;
  }

  Action parse_pair(std::string_view cell) {
    std::string_view members = cell.substr(1);
    const std::size_t end = members.find(')');
    if (end == std::string_view::npos || members.substr(end + 1) != kPairName) {
      refuse(cell, "a pair ends in )OVERLAP_F_B; write for example (0F7;7B3)OVERLAP_F_B");
    }
    members = members.substr(0, end);
    if (std::ranges::count(members, ';') != 1) {
      refuse(cell,
             "a pair holds two ops, a forward and a backward; write for example "
             "(0F7;7B3)OVERLAP_F_B");
    }
    Action action;
    action.form = Action::Form::pair;
    action.op = parse_op(trimmed(take_until(members, ';')), false);
    action.paired = parse_op(trimmed(members), true);
    const OpKind backward = action.paired.kind;
    if (action.op.kind != OpKind::forward ||
        (backward != OpKind::backward && backward != OpKind::backward_input)) {
      refuse(cell,
             "a pair is a forward F, then a backward B or I; write for example "
             "(0F7;7B3)OVERLAP_F_B");
    }
    return action;
  }

  Action parse_group(std::string_view cell) {
    if (cell.find(']') != cell.size() - 1) {
      refuse(cell, "a group ends in its only ]; write for example [0SEND_F1;0RECV_B0]");
    }
    Action action;
    action.form = Action::Form::group;
    std::string_view members = cell.substr(1, cell.size() - 2);
    const auto count = 1 + std::ranges::count(members, ';');
    action.group.reserve(static_cast<std::size_t>(count));
    for (auto left = count; left > 0; --left) {
      const std::string_view member = trimmed(take_until(members, ';'));
      const auto [op, other] = parse_with_other_end(member);
      if (!is_transfer(op.kind)) {
        refuse(member,
               "a group holds transfers alone: SEND_F, RECV_F, SEND_B, RECV_B; give other "
               "actions cells of their own");
      }
      action.group.push_back(op);
      action.others.push_back(other);
    }
    if (std::ranges::count(action.others, kAnyStage) == count) action.others.clear();
    file_.has_communication = true;
    return action;
  }

  // One op, and the stage at its other end if `text` names it: "0SEND_F3>2", "2RECV_F3<0".
  std::pair<Op, Stage> parse_with_other_end(std::string_view text) {
    const std::size_t arrow = text.find_first_of("<>");
    const Op op = parse_op(text.substr(0, arrow), false);
    if (arrow == std::string_view::npos) return {op, kAnyStage};
    if (!is_transfer(op.kind) || is_send(op.kind) != (text[arrow] == '>')) {
      refuse(text,
             "a stage at the other end is named of transfers alone: a send goes > to it, a receive "
             "comes < from it; write for example 0SEND_F3>2 or 2RECV_F3<0");
    }
    std::string_view rest = text.substr(arrow + 1);
    const auto other = take_number(rest, text, "stage", kMaxStages - 1);
    if (!other || !rest.empty()) {
      refuse(text, "one stage number ends the action after < or >; write for example 0SEND_F3>2");
    }
    return {op, static_cast<Stage>(*other)};
  }

  // One op that is the whole of `text`; `fused`: the second of a pair.
  Op parse_op(std::string_view text, bool fused) {
    std::string_view rest = text;
    Op op;
    op.replica = take_replica(rest, text);
    const std::optional<std::uint32_t> stage = take_number(rest, text, "stage", kMaxStages - 1);
    if (!stage) refuse(text, "an action begins with its stage number; write for example 0F3");
    op.stage = static_cast<std::uint16_t>(*stage);
    const Word word = take_word(rest, text);
    op.kind = word.kind;
    if (has_microbatch(op.kind)) {
      const auto microbatch = take_number(rest, text, "microbatch", kMaxMicrobatches - 1);
      if (!microbatch) {
        refuse(text, fmt::format("{0} needs a microbatch number; write for example {1}{0}0",
                                 word.text, op.stage));
      }
      op.microbatch = static_cast<Microbatch>(*microbatch);
    }
    if (!rest.empty()) refuse_rest(text, rest, op);
    if (word.letter) mention(op, *word.letter, fused);
    return op;
  }

  [[noreturn]] void refuse_rest(std::string_view text, std::string_view rest, const Op& op) const {
    if (!has_microbatch(op.kind)) {
      refuse(text, fmt::format("{} concerns the whole stage, nothing may follow it; write {}",
                               token(op.kind), to_string(op)));
    }
    refuse(text, fmt::format("{} follows the action {}; separate actions by commas", quoted(rest),
                             quoted(text.substr(0, text.size() - rest.size()))));
  }

  // What replica_prefix() writes, off the front of `rest`.
  std::uint8_t take_replica(std::string_view& rest, std::string_view text) const {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == rest.size() || rest[digits] != '~') return 0;
    const auto number = take_number(rest, text, "replica", kMaxReplicas - 1);
    rest.remove_prefix(1);
    return static_cast<std::uint8_t>(number.value_or(1));
  }

  // Digits off the front of `rest`, if any stand there.
  std::optional<std::uint32_t> take_number(std::string_view& rest, std::string_view text,
                                           std::string_view what, std::int64_t limit) const {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error == std::errc::invalid_argument) return std::nullopt;
    const std::string_view digits(rest.data(), static_cast<std::size_t>(end - rest.data()));
    if (error == std::errc::result_out_of_range || value > limit) {
      refuse(text,
             fmt::format("{} {} is too large; the largest is {}", what, shortened(digits), limit));
    }
    rest.remove_prefix(digits.size());
    return value;
  }

  // The kind of an op off the front of `rest`.
  Word take_word(std::string_view& rest, std::string_view text) const {
    const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto end = std::ranges::find_if_not(rest, is_letter);
    const std::string_view letters(rest.begin(), end);
    const std::optional<Word> word = word_named(letters);
    if (!word) {
      refuse(text, fmt::format(
                       "unknown action {}; after the stage stands F, B, I, W, BW, SEND_F, RECV_F, "
                       "SEND_B, RECV_B, UNSHARD, RESHARD, REDUCE_GRAD, RECOMPUTE, OFFLOAD or "
                       "RELOAD",
                       quoted(rest.substr(0, std::max<std::size_t>(letters.size(), 1)))));
    }
    rest.remove_prefix(letters.size());
    return *word;
  }

  void mention(const Op& op, BackwardLetter letter, bool fused) {
    BackwardMention mention = mention_of(op, letter);
    mention.row = line_;
    mention.cell = cell_;
    mention.action = static_cast<std::uint32_t>(file_.rows.back().size());
    mention.fused = fused;
    mentions_.push_back(mention);
  }

  std::string_view rest_;
  int line_ = 0;
  int cell_ = 0;
  ScheduleFile file_;
  std::vector<BackwardMention> mentions_;
};

}  // namespace

ScheduleFile parse_schedule(std::string_view text, const std::string& name) {
  return Parser(text, name).parse();
}

}  // namespace counterflow

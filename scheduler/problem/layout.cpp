#include "scheduler/problem/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/error.h"
#include "scheduler/ir/op.h"
#include "scheduler/problem/text.h"

namespace counterflow {
namespace {

constexpr int kMostNesting = 16;
// Letters and bars of an expanded layout: its layers, and the ends of its stages.
constexpr std::size_t kMostSymbols = kMaxLayers + static_cast<std::size_t>(kMaxStages);

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Expands a layout to letters and bars by recursive descent:
//   sequence = item*   item = (letter | '|' | '(' sequence ')') ['*' number]
class LayoutParser {
 public:
  explicit LayoutParser(std::string_view text) : text_(text) {}

  std::string symbols() {
    std::string all = sequence(0);
    if (at_ < text_.size()) fail("a ) without its (; remove it");
    return all;
  }

 private:
  [[noreturn]] void fail(std::string_view message) const {
    throw InputError(fmt::format("'{}': at position {}: {}", shown(text_), at_ + 1, message));
  }

  void skip_ignored() {
    while (at_ < text_.size() && (text_[at_] == ',' || text_[at_] == ' ')) ++at_;
  }

  // The next character that means something; 0 at the end.
  char peek() {
    skip_ignored();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::string sequence(int depth) {
    std::string all;
    while (peek() != '\0' && peek() != ')') {
      const std::string one = item(depth);
      const std::size_t times = repeat();
      if (!one.empty() && times > (kMostSymbols - all.size()) / one.size()) {
        fail(fmt::format("more than {} layers and stages; lower the repeat", kMostSymbols));
      }
      for (std::size_t i = 0; i < times; ++i) all += one;
    }
    return all;
  }

  std::string item(int depth) {
    const char c = peek();
    if (c == '(') return group(depth);
    if (c != '|' && !is_letter(c)) {
      fail(fmt::format("'{}' is not a letter, |, ( or ); write for example Et*3|(tt|)*29,m|L",
                       shown(text_.substr(at_, 1))));
    }
    ++at_;
    return std::string(1, c);
  }

  std::string group(int depth) {
    if (depth == kMostNesting) fail(fmt::format("groups nest more than {} deep", kMostNesting));
    const std::size_t opened = at_;
    ++at_;
    std::string inner = sequence(depth + 1);
    if (peek() != ')') {
      at_ = opened;
      fail("a ( without its ); close the group");
    }
    if (inner.empty()) fail("an empty group; remove it");
    ++at_;
    return inner;
  }

  // The number after a `*`, else 1.
  std::size_t repeat() {
    if (peek() != '*') return 1;
    ++at_;
    skip_ignored();
    if (at_ == text_.size() || !is_digit(text_[at_])) fail("a * without a number; write x*3");
    std::size_t number = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      number = std::min(number * 10 + static_cast<std::size_t>(text_[at_] - '0'), kMostSymbols + 1);
    }
    if (number == 0) fail("a repeat of 0; leave the item out");
    return number;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// "Ettt" as "Et*3"; two of a kind are shorter as they are.
std::string runs(const std::string& letters) {
  std::string text;
  for (std::size_t i = 0; i < letters.size();) {
    std::size_t end = i;
    while (end < letters.size() && letters[end] == letters[i]) ++end;
    text += end - i > 2 ? fmt::format("{}*{}", letters[i], end - i) : letters.substr(i, end - i);
    i = end;
  }
  return text;
}

// After a number, a comma sets the next letter off.
void append(std::string& text, std::string_view more) {
  if (!text.empty() && is_digit(text.back()) && !more.empty() && is_letter(more.front())) {
    text += ',';
  }
  text += more;
}

}  // namespace

StageLetters parse_layout(std::string_view text) {
  const std::string symbols = LayoutParser(text).symbols();
  if (symbols.empty()) {
    throw InputError("an empty layout; write for example Et*3|(tt|)*29,m|L");
  }
  StageLetters stages(1);
  std::size_t layers = 0;
  for (const char c : symbols) {
    if (c == '|') {
      stages.emplace_back();
    } else {
      stages.back() += c;
      ++layers;
    }
  }
  if (layers > kMaxLayers || stages.size() > static_cast<std::size_t>(kMaxStages)) {
    throw InputError(fmt::format("{} layers in {} stages; at most {} and {} are possible", layers,
                                 stages.size(), kMaxLayers, kMaxStages));
  }
  return stages;
}

std::string layout_string(const StageLetters& stages) {
  std::string text;
  for (std::size_t i = 0; i < stages.size();) {
    if (i + 1 == stages.size()) {
      append(text, runs(stages[i]));
      break;
    }
    // The last stage has no bar after it, so it is never part of a run.
    std::size_t end = i;
    while (end + 1 < stages.size() && stages[end] == stages[i]) ++end;
    const std::string one = runs(stages[i]) + "|";
    const std::string group = fmt::format("({})*{}", one, end - i);
    if (group.size() < one.size() * (end - i)) {
      append(text, group);
    } else {
      for (std::size_t k = i; k < end; ++k) append(text, one);
    }
    i = end;
  }
  return text;
}

}  // namespace counterflow

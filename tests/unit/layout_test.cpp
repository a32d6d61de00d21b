#include "scheduler/problem/layout.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "scheduler/error.h"

namespace counterflow {
namespace {

StageLetters repeated(StageLetters first, int times, const std::string& stage, StageLetters last) {
  for (int i = 0; i < times; ++i) first.push_back(stage);
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

TEST(Layout, ReadsLettersBarsRepeatsAndGroups) {
  EXPECT_EQ(parse_layout("Et*3|(tt|)*29,m|L"), repeated({"Ettt"}, 29, "tt", {"m", "L"}));
  EXPECT_EQ(parse_layout("E(|tt)*30,|mL"), repeated({"E"}, 30, "tt", {"mL"}));
  EXPECT_EQ(parse_layout("Et|(tt|)*30L"), repeated({"Et"}, 30, "tt", {"L"}));
  EXPECT_EQ(parse_layout("t"), StageLetters{"t"});
}

TEST(Layout, ABarEndsAStageSoTheLastOneMayBeEmpty) {
  EXPECT_EQ(parse_layout("Et|(tt|)*29L|"), repeated({"Et"}, 29, "tt", {"L", ""}));
  EXPECT_EQ(parse_layout("Et|(tt|)*29|L"), repeated({"Et"}, 29, "tt", {"", "L"}));
  EXPECT_EQ(parse_layout("|"), (StageLetters{"", ""}));
  EXPECT_EQ(parse_layout("t|*3"), (StageLetters{"t", "", "", ""}));
}

TEST(Layout, CommasAndBlanksMeanNothing) {
  EXPECT_EQ(parse_layout(" E t, * 3 | ,( t t | ) * 2 L,"), parse_layout("Et*3|(tt|)*2L"));
}

TEST(Layout, GroupsNest) {
  EXPECT_EQ(parse_layout("((ab)*2|)*2c"), (StageLetters{"abab", "abab", "c"}));
  EXPECT_EQ(parse_layout("(t)*3|(((t)))|"), (StageLetters{"ttt", "t", ""}));
}

TEST(Layout, WritesTheUsualForm) {
  EXPECT_EQ(layout_string(parse_layout("Ettt|(tt|)*29m|L")), "Et*3|(tt|)*29,m|L");
  EXPECT_EQ(layout_string({"E", "tt", "tt", "L"}), "E|tt|tt|L");
  EXPECT_EQ(layout_string({"tt", "tt", "tt", "tt"}), "(tt|)*3,tt");
  EXPECT_EQ(layout_string({"t", ""}), "t|");
  EXPECT_EQ(layout_string({"ttttt", "mL"}), "t*5|mL");
}

TEST(Layout, WhatIsWrittenReadsBackTheSame) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 5000; ++round) {
    StageLetters stages(1 + random() % 12);
    for (std::string& stage : stages) {
      for (std::uint64_t left = random() % 5; left > 0; --left) stage += "Ettm"[random() % 4];
    }
    // Neighbours alike are what the writer folds.
    if (round % 2 == 0) stages.insert(stages.begin(), random() % 9, stages.front());
    if (stages == StageLetters{""}) continue;  // not a layout
    const std::string text = layout_string(stages);
    ASSERT_EQ(parse_layout(text), stages) << text;
    ASSERT_EQ(layout_string(parse_layout(text)), text);
  }
}

struct Refusal {
  std::string text;
  std::string message;
};

TEST(Layout, SaysWhereAndWhyATextIsNoLayout) {
  const Refusal refusals[] = {
      {"", "an empty layout"},
      {" ,", "an empty layout"},
      {"Et*", "at position 4: a * without a number"},
      {"Et*x", "at position 4: a * without a number"},
      {"t*0", "at position 4: a repeat of 0"},
      {"t*-1", "at position 3: a * without a number"},
      {"*3", "at position 1: '*' is not a letter"},
      {"t**3", "at position 3: a * without a number"},
      {"(tt|", "at position 1: a ( without its )"},
      {"tt|)*3", "at position 4: a ) without its ("},
      {"t()", "at position 3: an empty group"},
      {"E;t", "at position 2: ';' is not a letter"},
      {"t3", "at position 2: '3' is not a letter"},
      {"t*999999999", "more than 69631 layers and stages"},
      {"t*99999999999999999999999999", "more than 69631 layers and stages"},
      {"((((t*100)*100)*100)*100)*100", "more than 69631 layers and stages"},
      {"t*5000", "5000 layers in 1 stages; at most 4096"},
      {"E\xc3\xa9t", "at position 2: "},
      {std::string("E\0t", 3), "at position 2: "},
  };
  for (const Refusal& refusal : refusals) {
    try {
      (void)parse_layout(refusal.text);
      ADD_FAILURE() << refusal.text << " was taken";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(refusal.message), std::string::npos)
          << refusal.text << ": " << error.what();
    }
  }
}

TEST(Layout, DeepNestingIsRefusedNotFollowed) {
  const std::string deep = std::string(100'000, '(') + "t" + std::string(100'000, ')');
  EXPECT_THROW((void)parse_layout(deep), InputError);
  std::string just(16, '(');
  just += "t" + std::string(16, ')');
  EXPECT_EQ(parse_layout(just), StageLetters{"t"});
}

TEST(Layout, AnyTextIsReadOrRefused) {
  std::mt19937_64 random(11);
  const std::string alphabet = "Ettm(()))**||,, 123909L";
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::uint64_t left = random() % 24; left > 0; --left) {
      text += random() % 40 == 0 ? static_cast<char>(random() % 256)
                                 : alphabet[random() % alphabet.size()];
    }
    try {
      const StageLetters stages = parse_layout(text);
      EXPECT_EQ(parse_layout(layout_string(stages)), stages) << text;
      ++taken;
    } catch (const InputError&) {
      continue;
    }
  }
  EXPECT_GT(taken, 500);
}

}  // namespace
}  // namespace counterflow

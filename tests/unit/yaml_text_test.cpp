#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "scheduler/problem/yaml_tree.h"

namespace counterflow::yaml {
namespace {

// Kind, text, quotes, keys and order: all that a reader of the tree sees but its lines.
bool same(const NodePtr& a, const NodePtr& b) {
  if (a->kind != b->kind || a->text != b->text) return false;
  if (a->items.size() != b->items.size() || a->entries.size() != b->entries.size()) return false;
  for (std::size_t i = 0; i < a->items.size(); ++i) {
    if (!same(a->items[i], b->items[i])) return false;
  }
  for (std::size_t i = 0; i < a->entries.size(); ++i) {
    if (a->entries[i].key != b->entries[i].key) return false;
    if (!same(a->entries[i].value, b->entries[i].value)) return false;
  }
  return true;
}

void expect_reads_back(const std::string& text) {
  const NodePtr tree = parse(text, "given");
  const std::string written = to_text(tree);
  const NodePtr again = parse(written, "written");
  EXPECT_TRUE(same(tree, again)) << text << "\nbecame\n" << written;
  EXPECT_EQ(to_text(again), written);
}

TEST(YamlText, ReadsBackToTheSameTree) {
  expect_reads_back("a: 1\nb: {c: [1, 2, {d: null}], e: {}}\nf: []\n");
  expect_reads_back("a: \"1\"\nb: '#x: [y'\nc: \"|\"\nd: \"it's \\\"\\\\ \\x01\"\n");
  expect_reads_back("a: -1\nb: \"-\"\nc: [-1, 0x1, 1e3, ~]\nd: yes\n");
  expect_reads_back("layout: Et*3|(tt|)*29,m|L\n\"odd key: \": 1\n");
  expect_reads_back("anchored: &x {a: 1}\nalias: *x\n");
  expect_reads_back("- 1\n- {a: 2}\n");
  expect_reads_back("just text\n");
}

TEST(YamlText, ReadsBackEveryExample) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES)) {
    if (entry.path().extension() != ".yaml") continue;
    expect_reads_back(read_text(entry.path().string()));
    ++examples;
  }
  EXPECT_GE(examples, 6);
}

TEST(YamlText, NumbersStayNumbersAndTextStaysText) {
  const NodePtr tree = parse("a: 4\nb: \"4\"\nc: -4\n", "given");
  EXPECT_EQ(to_text(tree), "a: 4\nb: \"4\"\nc: -4\n");
}

}  // namespace
}  // namespace counterflow::yaml

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/error/config_cases.h"

namespace counterflow::testing {
namespace {

class ConfigText : public ::testing::TestWithParam<TextCase> {};

TEST_P(ConfigText, IsRefused) {
  EXPECT_EQ(refusal(GetParam().yaml), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, ConfigText,
    ::testing::ValuesIn(std::vector<TextCase>{
        {"MergeKey",
         "pipeline: &p {ranks: 2, microbatches: 4, schedule: 1f1b}\nstages:\n  <<: *p\n",
         "model.yaml:3:3: stages.<<: merge keys are not supported; write the keys out"},
        {"KeyGivenTwice", "pipeline:\n  ranks: 2\n  microbatches: 4\n  ranks: 3\nstages: {}\n",
         "model.yaml:4:3: pipeline.ranks: given twice, first at model.yaml:2:3; remove one of "
         "them"},
        {"SectionGivenTwice", "pipeline: {}\nstages: {}\npipeline: {}\n",
         "model.yaml:3:1: pipeline: given twice, first at model.yaml:1:1; remove one of them"},
        {"KeyIsAList", "pipeline: {[1]: 2}\n",
         "model.yaml:1:12: a key is not a word; write `key: value`"},
        {"KeyIsEmpty", "~: 2\n", "model.yaml:1:1: a key is not a word; write `key: value`"},
        {"NoPipeline", "stages: {forward: 1ms}\n",
         "model.yaml:1:1: pipeline: missing; write for example pipeline: {ranks: 8, microbatches: "
         "24, schedule: 1f1b}"},
        {"NoStages", "pipeline: {ranks: 1, microbatches: 1, schedule: 1f1b}\n",
         "model.yaml:1:1: stages: missing; write for example stages: {forward: 1ms, "
         "backward_input: 1ms, backward_weight: 1ms}"},
        {"NoRanks", "pipeline: {microbatches: 1, schedule: 1f1b}\nstages: {}\n",
         "model.yaml:1:11: pipeline.ranks: missing; write for example ranks: 8"},
        {"NoMicrobatches", "pipeline: {ranks: 1, schedule: 1f1b}\nstages: {}\n",
         "model.yaml:1:11: pipeline.microbatches: missing; write for example microbatches: 24"},
        {"NoSchedule", "pipeline: {ranks: 1, microbatches: 1}\nstages: {}\n",
         "model.yaml:1:11: pipeline.schedule: missing; write for example schedule: 1f1b"},
        {"NoForward",
         "pipeline: {ranks: 1, microbatches: 1, schedule: 1f1b}\nstages: {backward_input: 1ms}\n",
         "model.yaml:2:9: stages.forward: missing; write for example forward: 18.522ms"},
        {"NearAKeyThatIsThere",
         "pipeline: {ranks: 1, microbatches: 1, schedule: 1f1b}\n"
         "stages: {forward: 1ms, backward: 2ms}\n",
         "model.yaml:2:24: stages.backward: unknown key; did you mean backward_input or "
         "backward_weight?"},
        {"BeginningOfAKeyThatIsThere",
         "pipeline: {ranks: 1, microbatches: 1, schedule: 1f1b}\n"
         "stages: {forward: 1ms, backward_input: 1ms, backward: 2ms}\n",
         "model.yaml:2:45: stages.backward: unknown key; did you mean backward_weight?"},
        {"KeyThatIsThereIsNoGuess", "units: {time: ms, tme: ms}\nstages: {}\n",
         "model.yaml:1:19: units.tme: unknown key; the keys here are time"},
        {"EmptyText", "", "model.yaml: the config is empty; it needs the keys pipeline and stages"},
        {"OnlyAComment", "# nothing\n",
         "model.yaml: the config is empty; it needs the keys pipeline and stages"},
        {"TopLevelIsAList", "- 1\n",
         "model.yaml:1:1: a list is not a map; write keys below it, such as pipeline: ..."},
        {"TopLevelIsAWord", "hello\n",
         "model.yaml:1:1: hello is not a map; write keys below it, such as pipeline: ..."},
        {"BadYaml", "pipeline: {ranks: 2\n",
         "model.yaml:2:1: not well-formed YAML: end of map flow not found"},
        {"BadIndent", "pipeline:\n  ranks: 2\n ranks: 3\n",
         "model.yaml:3:2: not well-formed YAML: end of map not found"},
        {"TabIndent", "pipeline:\n	ranks: 2\n",
         "model.yaml:2:1: not well-formed YAML: illegal map value; the line is indented with a "
         "tab, write spaces"},
        {"TabIndentAfterSpaces", "pipeline:\n  ranks: 2\n  \tmicrobatches: 2\n",
         "model.yaml:3:3: not well-formed YAML: illegal tab when looking for indentation; the line "
         "is indented with a tab, write spaces"},
        {"TabIndentOfTheFirstLine", "\tpipeline:\n  ranks: 2\n",
         "model.yaml:1:1: not well-formed YAML: illegal map value; the line is indented with a "
         "tab, write spaces"},
        {"TwoDocuments", "pipeline: {}\n---\nstages: {}\n",
         "model.yaml:2:1: a second YAML document starts here; keep one document and remove the "
         "rest"},
        {"UnknownAlias", "pipeline: *p\n",
         "model.yaml:1:11: not well-formed YAML: the referenced anchor is not defined"},
        {"AliasInItself", "pipeline: &p {ranks: *p}\n",
         "model.yaml:1:22: this alias stands inside the value it names; write the value out"},
        {"Tag", "pipeline: !!map {ranks: 2}\n",
         "model.yaml:1:11: the tag tag:yaml.org,2002:map has no meaning here; remove it"},
        {"NotUtf8", "pipeline: \xff\n",
         "model.yaml:1:11: byte 0xff is not UTF-8; save as UTF-8 text"},
        {"OverlongUtf8", "pipeline: \xc0\xaf\n",
         "model.yaml:1:11: byte 0xc0 is not UTF-8; save as UTF-8 text"},
        {"SurrogateUtf8", "pipeline: \xed\xa0\x80\n",
         "model.yaml:1:11: byte 0xed is not UTF-8; save as UTF-8 text"},
        {"CutUtf8", "pipeline: \xe2\x82",
         "model.yaml:1:11: byte 0xe2 is not UTF-8; save as UTF-8 text"},
        {"ControlCharacter", "pipeline:\n  ranks: 2\x04\n",
         "model.yaml:2:11: control character 0x04; remove it"},
    }),
    case_name<TextCase>);

class ConfigOverride : public ::testing::TestWithParam<OverrideCase> {};

TEST_P(ConfigOverride, IsRefused) {
  const OverrideCase& c = GetParam();
  EXPECT_EQ(refusal(kGoodConfig, c.overrides), "--set " + c.overrides.back() + ": " + c.message);
}

INSTANTIATE_TEST_SUITE_P(
    Overrides, ConfigOverride,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"OverrideWithoutValue",
         {"pipeline.ranks"},
         "no `=`; write key.path=value, for example pipeline.ranks=8"},
        {"OverrideWithoutKey",
         {"=3"},
         "an empty key; write key.path=value, for example pipeline.ranks=8"},
        {"OverrideWithAnEmptyKey",
         {"pipeline..ranks=3"},
         "an empty key; write key.path=value, for example pipeline.ranks=8"},
        {"OverrideIntoANumber",
         {"pipeline.ranks.x=3"},
         "pipeline.ranks is not a map and has no key x; set pipeline.ranks itself"},
        {"OverrideOfBadYaml",
         {"pipeline.ranks=[1"},
         "not well-formed YAML: end of sequence flow not found"},
    }),
    case_name<OverrideCase>);

// Control characters and broken text are shown, not passed on to a terminal.
TEST(ConfigOverrideText, IsEscapedInMessages) {
  EXPECT_EQ(refusal(kGoodConfig, {"pipeline.ranks=1\n---\n2"}),
            "--set pipeline.ranks=1\\x0a---\\x0a2: a second YAML document starts here; keep one "
            "document and remove the rest");
  EXPECT_EQ(refusal(kGoodConfig, {"pipeline.ranks=\xff"}),
            "--set pipeline.ranks=\\xff: byte 0xff is not UTF-8; save as UTF-8 text");
}

TEST(ConfigOverrideText, DoesNotHideATopLevelThatIsNoMap) {
  EXPECT_EQ(refusal("[1, 2]", {"pipeline.ranks=3"}),
            "model.yaml:1:1: a list is not a map; write keys below it, such as pipeline: ...");
}

TEST(ConfigNesting, HasALimit) {
  const std::string rule = ": nested 32 deep; no key needs that";
  EXPECT_EQ(refusal(std::string(40, '[') + std::string(40, ']')), "model.yaml:1:33" + rule);
  std::string path = "a";
  for (int i = 0; i < 100'000; ++i) path += ".a";
  EXPECT_EQ(refusal(kGoodConfig, {path + "=1"}), "--set " + path.substr(0, 60) + "..." + rule);
}

// Each alias nests the one before; written out, the last would be 100 deep.
TEST(ConfigNesting, CountsAliases) {
  std::string yaml = "a: &a0 [1]\n";
  for (int i = 0; i < 100; ++i) {
    const std::string n = std::to_string(i + 1);
    yaml += "b" + n + ": &a" + n + " [*a" + std::to_string(i) + "]\n";
  }
  EXPECT_EQ(refusal(yaml), "model.yaml:31:12: nested 32 deep; no key needs that");
}

// Ten lists of ten of ten ...: refused at the first that is no number, not written out.
TEST(ConfigNesting, AliasesDoNotMultiply) {
  std::string yaml = "pipeline: {ranks: 2, microbatches: 4, schedule: 1f1b}\nstages:\n  forward:\n";
  yaml += "  - &a0 [1ms, 1ms]\n";
  for (int i = 0; i < 20; ++i) {
    yaml += "  - &a" + std::to_string(i + 1) + " [";
    for (int j = 0; j < 10; ++j) yaml += "*a" + std::to_string(i) + ", ";
    yaml += "]\n";
  }
  EXPECT_EQ(refusal(yaml),
            "model.yaml:4:5: stages.forward[0]: a list is not a duration; write a decimal number "
            "with a unit, for example 18.522ms");
}

TEST(ConfigValues, LongValuesAreShortened) {
  EXPECT_EQ(refusal(kGoodConfig, {"stages=" + std::string(1000, 'x')}),
            "--set stages=" + std::string(53, 'x') + "...: stages: " + std::string(60, 'x') +
                "... is not a map; write keys below it, such as forward: ...");
  EXPECT_EQ(refusal("pipeline: {\"ra\\nnks\": 2}\nstages: {}\n"),
            "model.yaml:1:12: pipeline.ra\\x0anks: unknown key; did you mean ranks?");
}

std::string read_refusal(const std::string& path) {
  try {
    (void)read_config(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConfigFile, IsRefusedIfItIsNone) {
  const std::string folder = ::testing::TempDir();
  EXPECT_EQ(read_refusal(folder), folder + ": this is a directory; give the path of a YAML config");
  EXPECT_EQ(read_refusal(folder + "none.yaml"),
            folder + "none.yaml: no such file; give the path of a YAML config");
}

TEST(ConfigFile, IsRefusedIfItIsEmptyOrTooLarge) {
  const std::string path = ::testing::TempDir() + "counterflow_config_errors.yaml";
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(read_refusal(path),
            path + ": the config is empty; it needs the keys pipeline and stages");
  std::ofstream(path, std::ios::trunc) << std::string((16 << 20) + 1, ' ');
  EXPECT_EQ(read_refusal(path),
            path + ": larger than 16 MiB; a config holds a few numbers for each stage");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace counterflow::testing

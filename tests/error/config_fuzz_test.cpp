#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/problem/config.h"
#include "tests/support/cases.h"

// Damaged copies of the examples: each must be read or refused with an InputError, nothing else.
namespace counterflow {
namespace {

constexpr int kMutationsOfEach = testing::cases(1500);

// std:: distributions differ by library; a plain remainder does not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(engine_() % end); }

 private:
  std::mt19937_64 engine_;
};

constexpr std::string_view kFragments[] = {"-",         "0",        "1e999", "-1",
                                           "nan",       ".inf",     "0x1F",  "'",
                                           "\"",        "[",        "]",     "{",
                                           "}",         ", ",       ": ",    "\n",
                                           "\n  ",      "\t",       "&a ",   "*a",
                                           "<<: *a",    "!!int ",   "#",     "|\n",
                                           ">\n",       "? ",       "---\n", "...",
                                           "%YAML 9\n", "true",     "~",     "99999999999999999999",
                                           "ms",        "GiB",      "GB/s",  "[0, 1, 3ms]",
                                           "ranks",     "stages",   "count", "scale: [1]",
                                           "\\x",       "\xc3\xa9", "\xff",  "\x04"};

std::string mutate(std::string text, Dice& dice) {
  const std::size_t edits = 1 + dice.below(4);
  for (std::size_t i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = dice.below(text.size());
    const std::size_t length = std::min(1 + dice.below(12), text.size() - at);
    switch (dice.below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kFragments[dice.below(std::size(kFragments))]);
        break;
      case 2:
        text.replace(at, length, kFragments[dice.below(std::size(kFragments))]);
        break;
      case 3:
        text[at] = static_cast<char>(dice.below(256));
        break;
      default:
        text.insert(dice.below(text.size()), text.substr(at, length));
    }
  }
  return text;
}

// "" if the config was read or refused as it should be, else what happened.
std::string outcome(const std::string& yaml, int& read) {
  try {
    const Config config = parse_config(yaml, "model.yaml");
    // A damaged number may ask for a legal problem of gigabytes.
    if (std::int64_t{config.ranks.value} * config.microbatches.value < 1'000'000) {
      (void)make_problem(config, {Placement(PlacementKind::loop, config.ranks.value, 1), false});
    }
    ++read;
  } catch (const InputError& error) {
    return std::string_view(error.what()).substr(0, 10) == "model.yaml" ? "" : error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> examples() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

TEST(ConfigFuzz, DamagedExamplesAreReadOrRefused) {
  Dice dice(20240);
  int read = 0;
  int total = 0;
  const std::vector<std::string> texts = examples();
  ASSERT_GE(texts.size(), 6U);
  for (const std::string& text : texts) {
    for (int i = 0; i < kMutationsOfEach; ++i, ++total) {
      const std::string yaml = mutate(text, dice);
      ASSERT_EQ(outcome(yaml, read), "") << yaml;
    }
  }
  // Some damage hits comments or digits: both outcomes must be among them.
  EXPECT_GT(read, total / 50);
  EXPECT_LT(read, total * 49 / 50);
}

TEST(ConfigFuzz, DamagedOverridesAreReadOrRefused) {
  Dice dice(20241);
  constexpr std::string_view kOverrides[] = {
      "pipeline.ranks=8", "stages.forward=[1ms, 2ms]", "links.latency={default: 1us, pairs: []}",
      "execution={preset: nccl, semantics: posted}", "memory.static=1GiB"};
  const std::string text = examples().front();
  for (int i = 0; i < kMutationsOfEach; ++i) {
    const std::string given = mutate(std::string(kOverrides[dice.below(5)]), dice);
    try {
      (void)parse_config(text, "model.yaml", {given});
    } catch (const InputError&) {
      continue;
    } catch (const std::exception& error) {
      FAIL() << given << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/targets.h"

// Every seed of the fuzzer and every input that once was a fault, without a fuzzer.
namespace counterflow {
namespace {

namespace files = std::filesystem;

struct Target {
  std::string_view name;
  void (*run)(std::string_view);
};

constexpr std::array<Target, 5> kTargets = {{{"config", fuzz::config},
                                             {"schedule_file", fuzz::schedule_file},
                                             {"program_json", fuzz::program_json},
                                             {"timeline_json", fuzz::timeline_json},
                                             {"flight_dump", fuzz::flight_dump}}};

std::vector<files::path> files_of(std::string_view kind, std::string_view target) {
  std::vector<files::path> paths;
  for (const auto& entry : files::directory_iterator(files::path(FUZZ_FILES) / kind / target)) {
    // .gitkeep and the like are no inputs.
    if (!entry.path().filename().string().starts_with(".")) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void replay(const Target& target, const files::path& path) {
  SCOPED_TRACE(path.string());
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_NO_THROW(target.run(text));
}

TEST(Fuzz, SeedsAreTakenWithoutFault) {
  for (const Target& target : kTargets) {
    const std::vector<files::path> seeds = files_of("corpus", target.name);
    EXPECT_GE(seeds.size(), 3U) << target.name;
    for (const files::path& path : seeds) replay(target, path);
  }
}

TEST(Fuzz, FoundFaultsStayMended) {
  for (const Target& target : kTargets) {
    for (const files::path& path : files_of("regressions", target.name)) replay(target, path);
  }
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/ir/schedule_file.h"
#include "tests/support/cases.h"

// Seeded mutations of real schedule files: each either parses, and then its compute survives a
// round trip, or is refused as bad input. Nothing else may happen.
namespace counterflow {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> texts = {
      "0F0,[0SEND_F0;0RECV_B0],~1F1,(0F1;~1B0)OVERLAP_F_B,0REDUCE_GRAD\r\n\"\"\r\n\"1F0\","
      "1BW0\r\n"};
  for (const char* name :
       {"dualpipev_4rank_10mb.csv", "interleaved_2rank_4mb_comms.csv", "split_8rank_10mb.csv",
        "zb1p_2rank_2stagep_comms.csv", "zb1p_2rank_2stagep_compute.csv"}) {
    std::ifstream in(std::string(TEST_DATA) + "/public/" + name, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    EXPECT_FALSE(texts.back().empty()) << name;
  }
  return texts;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  void mutate(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(below(12), text.size() - at);
    switch (below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(below(text.size() + 1), below(12)));
        break;
      case 2:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 3:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      default:
        text.replace(at, length, kPieces[below(std::size(kPieces))]);
    }
  }
  std::size_t below(std::size_t bound) { return random_() % bound; }

 private:
  static constexpr const char* kPieces[] = {",",
                                            ";",
                                            "\n",
                                            "\r\n",
                                            "\"",
                                            "(",
                                            ")",
                                            "[",
                                            "]",
                                            "~",
                                            "F",
                                            "B",
                                            "BW",
                                            "W",
                                            "I",
                                            "0",
                                            "99999",
                                            "4294967295",
                                            "-1",
                                            " ",
                                            "0B0",
                                            "0W0",
                                            "SEND_F",
                                            "OVERLAP_F_B",
                                            "UNSHARD",
                                            "\t",
                                            "\xEF\xBB\xBF",
                                            "18446744073709551616"};
  std::mt19937_64 random_;
};

TEST(ScheduleFileFuzz, MutatedFilesParseOrAreRefused) {
  const std::vector<std::string> texts = seeds();
  Mutator mutator(20240607);
  int parsed = 0;
  int refused = 0;
  for (int round = 0; round < testing::cases(20000); ++round) {
    std::string text = texts[mutator.below(texts.size())];
    for (std::size_t left = 1 + mutator.below(4); left > 0; --left) mutator.mutate(text);
    try {
      const ScheduleFile file = parse_schedule(text, "fuzz.csv");
      ++parsed;
      const Schedule compute = file.compute();
      ASSERT_EQ(parse_schedule(to_csv(compute), "again.csv").compute().ranks, compute.ranks)
          << text;
    } catch (const InputError& error) {
      ++refused;
      ASSERT_EQ(std::string(error.what()).rfind("fuzz.csv", 0), 0U) << error.what() << "\n" << text;
    }
  }
  EXPECT_GT(parsed, testing::cases(500));
  EXPECT_GT(refused, testing::cases(500));
}

std::size_t actions(const ScheduleFile& file) {
  std::size_t total = 0;
  for (const auto& row : file.rows) total += row.size();
  return total;
}

// A file cut between two cells holds the actions before the cut; cut elsewhere it may be refused.
TEST(ScheduleFileFuzz, TruncatedFilesParseOrAreRefused) {
  for (const std::string& text : seeds()) {
    std::size_t before = 0;
    for (std::size_t length = 1; length <= text.size(); ++length) {
      const bool whole_cells = length == text.size() || text[length] == ',' || text[length] == '\n';
      try {
        const ScheduleFile file = parse_schedule(std::string_view(text).substr(0, length), "a.csv");
        if (!whole_cells) continue;
        ASSERT_GE(actions(file), before);
        ASSERT_LE(actions(file), before + 1);
        before = actions(file);
      } catch (const InputError& error) {
        ASSERT_FALSE(whole_cells) << error.what();
      }
    }
    EXPECT_EQ(before, actions(parse_schedule(text, "a.csv")));
  }
}

}  // namespace
}  // namespace counterflow

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/cases.h"
#include "tests/support/interleavings.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"
#include "tests/support/rank_mutations.h"

// What is done to the waits and slots of a lowered program is either found by verify(), or does
// not change a single value under any interleaving drawn.
namespace counterflow {
namespace {

using testing::draw;
using testing::values_of;

TEST(BufferProofs, RejectEveryMutantThatComputesSomethingElse) {
  testing::RandomProblems problems(11);
  std::mt19937_64 random(12);
  std::map<std::string, std::map<std::string, int>> counts;
  for (int n = 0; n < testing::cases(4000); ++n) {
    auto [family, problem] = problems.next();
    for (Bytes& size : problem.message) size = Bytes{16};
    for (StageMemory& memory : problem.memory) memory = {Bytes{32}, Bytes{16}};
    const Program program = compile(problem, generate(*family, problem));
    const auto& mutation = testing::kRankMutations[n % std::ssize(testing::kRankMutations)];
    Program mutant = program;
    const auto rank = draw(random, 0, std::ssize(mutant.ranks) - 1);
    if (!mutation.mutate(mutant.ranks[static_cast<std::size_t>(rank)], random)) continue;
    const ProgramVerdict verdict = verify(problem, mutant);
    auto& count = counts[mutation.name];
    if (!verdict.diagnostics.empty()) {
      ++count[std::string(verdict.diagnostics.front().rule)];
      continue;
    }
    ++count["accepted, same values"];
    std::string why;
    ASSERT_TRUE(values_of(mutant, &why) == values_of(program))
        << family->name << ": " << mutation.name << " on rank " << rank << ": " << why;
  }
  for (const auto& [mutation, reasons] : counts) {
    std::cout << mutation << ":";
    for (const auto& [reason, times] : reasons) std::cout << "  " << reason << " " << times;
    std::cout << "\n";
  }
  EXPECT_GT(counts["drop a wait"]["race"], testing::cases(100));
  EXPECT_EQ(counts["drop a wait"]["accepted, same values"], 0);
  EXPECT_EQ(counts["another version"]["accepted, same values"], 0);
}

}  // namespace
}  // namespace counterflow

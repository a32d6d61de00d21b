#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/cases.h"
#include "tests/support/file_mutations.h"
#include "tests/support/machine.h"
#include "tests/support/mutations.h"
#include "tests/support/random_problems.h"

// The proof of "completes" or "deadlocks" beside an operational machine that simply tries, under
// each of the three rules.
namespace counterflow {
namespace {

using testing::cases;
using testing::Machine;
using testing::Random;
using testing::RandomProblems;

struct Count {
  int completes = 0;
  int deadlocks = 0;
};

class Verdicts {
 public:
  // Adds a program; expects proof and trial to agree, in two orders of events.
  void compare(const Problem& problem, const Program& program, std::uint64_t seed) {
    for (const auto& [semantics, completes] : verify_communication(problem, program).semantics) {
      for (const std::uint64_t run : {seed, seed + 1}) {
        ASSERT_EQ(Machine(problem, program, semantics, run).run().completes, completes)
            << name(semantics) << "\n"
            << to_csv(program);
      }
      ++(completes ? counts_[semantics].completes : counts_[semantics].deadlocks);
    }
  }
  void print(const char* title) const {
    for (const auto& [semantics, count] : counts_) {
      std::printf("%s, %s: %d complete, %d deadlock\n", title, std::string(name(semantics)).c_str(),
                  count.completes, count.deadlocks);
    }
  }
  [[nodiscard]] Count of(Semantics semantics) const { return counts_.at(semantics); }

 private:
  std::map<Semantics, Count> counts_;
};

RandomProblems::Sample small(RandomProblems& problems) {
  for (;;) {
    auto sample = problems.next();
    if (sample.problem.stages() * sample.problem.microbatches <= 40) return sample;
  }
}

// What may be shuffled at will and still be well-formed: whole instructions, groups, streams.
void disturb(Random& random, Program& program) {
  using Lists = testing::ListMutations<testing::LooseInstruction>;
  constexpr testing::ProgramMutation mutations[] = {
      testing::on_program<Lists::swap>, testing::on_program<Lists::move>,
      testing::on_program<testing::join>, testing::on_program<testing::restream>};
  for (auto left = testing::draw(random, 1, 4); left > 0; --left) {
    (void)mutations[testing::draw_index(random, std::size(mutations))](random, program);
  }
}

TEST(Deadlock, OfLoweredProgramsIsProvedAsItHappens) {
  RandomProblems problems(811);
  Random random(812);
  Verdicts verdicts;
  for (int index = 0; index < cases(2500); ++index) {
    const auto sample = small(problems);
    Program program = compile(sample.problem, generate(*sample.family, sample.problem));
    disturb(random, program);
    SCOPED_TRACE(index);
    ASSERT_NO_FATAL_FAILURE(
        verdicts.compare(sample.problem, program, static_cast<std::uint64_t>(index)));
  }
  verdicts.print("lowered programs, disturbed");
  EXPECT_GT(verdicts.of(Semantics::rendezvous).deadlocks, cases(200));
  EXPECT_GT(verdicts.of(Semantics::rendezvous).completes, cases(200));
}

TEST(Deadlock, OfFilesIsProvedAsItHappens) {
  RandomProblems problems(821);
  Random random(822);
  Verdicts verdicts;
  for (int index = 0; index < cases(3500); ++index) {
    const auto sample = small(problems);
    const Program lowered = compile(sample.problem, generate(*sample.family, sample.problem));
    ScheduleFile file = parse_schedule(to_csv(lowered), "program.csv");
    using Lists = testing::ListMutations<Action>;
    for (auto left = testing::draw(random, 1, 4); left > 0; --left) {
      constexpr testing::NamedFileMutation mutations[] = {
          {"swap", Lists::swap}, {"move", Lists::move}, {"regroup", testing::regroup}};
      (void)mutations[testing::draw_index(random, std::size(mutations))].apply(random, file.rows);
    }
    SCOPED_TRACE(index);
    ASSERT_NO_FATAL_FAILURE(verdicts.compare(sample.problem, import(sample.problem, file),
                                             static_cast<std::uint64_t>(index)));
  }
  verdicts.print("files, disturbed");
  EXPECT_GT(verdicts.of(Semantics::posted).deadlocks, cases(200));
  EXPECT_GT(verdicts.of(Semantics::rendezvous).completes, cases(200));
}

}  // namespace
}  // namespace counterflow

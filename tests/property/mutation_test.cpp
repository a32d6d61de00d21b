#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/passes/compile.h"
#include "scheduler/verify/dry_run.h"
#include "scheduler/verify/rules.h"
#include "scheduler/verify/verify.h"
#include "scheduler/verify/wait_graph.h"
#include "schedules/registry.h"
#include "tests/support/cases.h"
#include "tests/support/file_mutations.h"
#include "tests/support/machine.h"
#include "tests/support/mutations.h"
#include "tests/support/orders.h"
#include "tests/support/random_problems.h"

// Nobody gets past the verifier: damaged programs and files are rejected, or what they do is shown
// to be the same by running them with symbols for values.
namespace counterflow {
namespace {

using testing::cases;
using testing::Machine;
using testing::Random;
using testing::RandomProblems;

constexpr std::uint64_t kSeeds[] = {1, 2};

// A problem, a faultless program for it, and what that computes.
struct Base {
  const Family* family = nullptr;
  Problem problem{};
  Schedule schedule{};
  Program program{};
  ScheduleFile file{};  // the program as text
  Machine::Outcome lowered{}, imported{};
};

Base base_of(RandomProblems::Sample sample) {
  Base base{.family = sample.family, .problem = std::move(sample.problem)};
  base.schedule = generate(*base.family, base.problem);
  base.program = compile(base.problem, base.schedule);
  base.file = parse_schedule(to_csv(base.program), "program.csv");
  base.lowered = Machine(base.problem, base.program, Semantics::rendezvous, 1).run();
  const Program imported = import(base.problem, base.file);
  base.imported = Machine(base.problem, imported, Semantics::rendezvous, 1).run();
  return base;
}

// Small enough that a mutation is felt: up to a few hundred instructions.
std::vector<Base> bases(std::size_t count) {
  std::vector<Base> result;
  RandomProblems problems(31);
  while (result.size() < count) {
    auto sample = problems.next();
    if (sample.problem.stages() * sample.problem.microbatches > 40) continue;
    result.push_back(base_of(std::move(sample)));
  }
  return result;
}

// Under every rule and in several orders of events, the program ends and computes this.
bool computes(const Problem& problem, const Program& program, const Machine::Outcome& expected) {
  for (const Semantics semantics : kAllSemantics) {
    for (const std::uint64_t seed : kSeeds) {
      if (Machine(problem, program, semantics, seed).run() != expected) return false;
    }
  }
  return true;
}

// How each mutation fared: by rule, or equivalent.
class Tally {
 public:
  explicit Tally(std::string title) : title_(std::move(title)) {}

  void add(std::string_view mutation, const std::string& reason) {
    ++counts_[std::string(mutation)][reason];
  }
  void print() const {
    std::printf("%s\n", title_.c_str());
    for (const auto& [mutation, reasons] : counts_) {
      std::printf("  %-22s", mutation.c_str());
      for (const auto& [reason, count] : reasons) std::printf(" %s %d", reason.c_str(), count);
      std::printf("\n");
    }
  }

 private:
  std::string title_;
  std::map<std::string, std::map<std::string, int>> counts_;
};

std::string first_rule(const Diagnostics& faults) {
  return faults.empty() ? "" : faults.front().rule;
}

TEST(Mutants, OfProgramsAreRejectedOrEquivalent) {
  const std::vector<Base> all = bases(150);
  const auto& mutations = testing::program_mutations();
  Random random(2026);
  Tally tally("programs");
  for (const Base& base : all) {
    EXPECT_TRUE(verify_alone(base.program).diagnostics.empty()) << base.family->name;
  }
  int shown_alone = 0;  // faults that a program shows without its problem
  for (int made = 0; made < cases(6000);) {
    const Base& base = all[testing::draw_index(random, all.size())];
    const auto& mutation = mutations[static_cast<std::size_t>(made) % mutations.size()];
    Program mutant = base.program;
    if (!mutation.apply(random, mutant)) continue;
    ++made;
    const Diagnostics faults = verify(base.problem, mutant).diagnostics;
    const Diagnostics alone = verify_alone(mutant).diagnostics;
    if (!alone.empty()) {
      ++shown_alone;
      EXPECT_FALSE(faults.empty()) << mutation.name << ": " << first_rule(alone);
    }
    if (!faults.empty()) {
      tally.add(mutation.name, first_rule(faults));
      continue;
    }
    tally.add(mutation.name, "equivalent");
    ASSERT_TRUE(computes(base.problem, mutant, base.lowered))
        << mutation.name << " of " << base.family->name << ", mutant " << made << ":\n"
        << to_csv(base.program) << to_csv(mutant);
  }
  tally.print();
  EXPECT_GT(shown_alone, cases(2000));
}

// As `verify` judges a file: its computes and stage actions, then its transfers as they stand.
Diagnostics faults_of(const Problem& problem, const ScheduleFile& file) {
  Diagnostics faults = verify(problem, file);
  if (faults.empty()) faults = verify_communication(problem, import(problem, file)).diagnostics;
  return faults;
}

TEST(Mutants, OfFilesAreRejectedOrEquivalent) {
  const std::vector<Base> all = bases(150);
  const auto& mutations = testing::file_mutations();
  Random random(2027);
  Tally tally("files with communication");
  for (int made = 0; made < cases(3000);) {
    const Base& base = all[testing::draw_index(random, all.size())];
    const auto& mutation = mutations[static_cast<std::size_t>(made) % mutations.size()];
    ScheduleFile mutant = base.file;
    if (!mutation.apply(random, mutant.rows)) continue;
    ++made;
    const Diagnostics faults = faults_of(base.problem, mutant);
    if (!faults.empty()) {
      tally.add(mutation.name, first_rule(faults));
      continue;
    }
    tally.add(mutation.name, "equivalent");
    ASSERT_TRUE(computes(base.problem, import(base.problem, mutant), base.imported))
        << mutation.name << " of " << base.family->name << ", mutant " << made << ":\n"
        << to_csv(base.file) << to_csv(mutant);
  }
  tally.print();
}

TEST(Mutants, OfOrdersAreRejectedOrEquivalent) {
  using Lists = testing::ListMutations<Slot>;
  constexpr std::array<std::pair<const char*, bool (*)(Random&, Lists::Lists&)>, 5> mutations = {{
      {"drop", Lists::drop},
      {"duplicate", Lists::duplicate},
      {"swap", Lists::swap},
      {"move", Lists::move},
      {"re-rank", Lists::rerank},
  }};
  const std::vector<Base> all = bases(150);
  Random random(2028);
  Tally tally("orders of compute");
  for (int made = 0; made < cases(1500);) {
    const Base& base = all[testing::draw_index(random, all.size())];
    const auto& [name, apply] = mutations[static_cast<std::size_t>(made) % mutations.size()];
    Schedule mutant = base.schedule;
    if (!apply(random, mutant.ranks)) continue;
    ++made;
    const Diagnostics faults = verify(base.problem, mutant);
    if (!faults.empty()) {
      tally.add(name, first_rule(faults));
      continue;
    }
    tally.add(name, "equivalent");
    ASSERT_TRUE(computes(base.problem, compile(base.problem, mutant), base.lowered))
        << name << " of " << base.family->name << ":\n"
        << to_csv(base.schedule) << to_csv(mutant);
  }
  tally.print();
}

// Two ways to the same question, deadlocks included: a run without times, and a search for cycles.
TEST(Mutants, RunThroughExactlyWhereTheWaitGraphHasNoCycle) {
  const std::vector<Base> all = bases(150);
  const auto& mutations = testing::program_mutations();
  Random random(2029);
  int through = 0;
  int stuck = 0;
  for (int made = 0; made < cases(4000); ++made) {
    const Base& base = all[testing::draw_index(random, all.size())];
    Program mutant = base.program;
    if (!mutations[static_cast<std::size_t>(made) % mutations.size()].apply(random, mutant))
      continue;
    Diagnostics faults;
    rules::form(base.problem, mutant, faults);
    if (!faults.empty()) continue;
    const References references(mutant);
    for (const Semantics semantics : kAllSemantics) {
      const WaitGraph graph(mutant, references, semantics);
      const bool acyclic = topological_order(graph.graph()).size() == num_vertices(graph.graph());
      const bool completes = runs_through(mutant, references, semantics);
      ASSERT_EQ(completes, acyclic && !graph.starves())
          << "mutant " << made << " of " << base.family->name << " under " << name(semantics);
      ++(completes ? through : stuck);
    }
  }
  EXPECT_GT(through, cases(1000));
  EXPECT_GT(stuck, cases(500));
}

}  // namespace
}  // namespace counterflow

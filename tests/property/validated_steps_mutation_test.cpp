#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "executor/virtual_streams.h"
#include "reference/model_compute.h"
#include "scheduler/passes/compile.h"
#include "scheduler/passes/in_steps.h"
#include "scheduler/problem/steps.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/mutations.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"
#include "tests/support/rank_mutations.h"

// What is done to consecutive steps that are validated is either found by verify(), or does not
// change a bit of what they train, under any interleaving drawn.
namespace counterflow {
namespace {

constexpr int kSteps = 2;
// Every step is clipped, so that a validation left out, or early, shows.
constexpr reference::Sgd kSgd{.rate = 0.5F, .clip = 0.1F};

struct Base {
  Base(const char* name, int p, int m, Validation validation)
      : family(*find_family(name)),
        wanted(testing::with_optimizer(
            testing::family_problem(family, p, family.default_chunks, m),
            {.bucket = Bytes{0}, .tied = Bytes{8}, .validation = validation})),
        model(reference::mlp_model<float>(wanted, {.rows = 1, .width = 2, .hidden = 3}, 17)),
        one(reference::with_sizes_of(model, wanted)),
        all(in_steps(one, kSteps)),
        program(in_steps(one, compile(one, generate(family, one)), kSteps)),
        expected(reference::single_process_training(model, one, kSgd, kSteps)) {}

  // Does it train the same in several orders?
  [[nodiscard]] bool trains(const Program& mutant, std::string* why) const {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      reference::ModelCompute compute(model, one, kSgd, {}, kSteps);
      ExecutionModel rules = ExecutionModel::gloo();
      rules.semantics = kAllSemantics[seed % 3];
      const auto run =
          exec::VirtualStreams().run(mutant, compute, {.seed = seed, .execution = rules});
      *why = run.failure ? run.failure->reason : "other numbers";
      if (run.failure || !(compute.result() == expected.last)) return false;
      for (Stage stage = 0; stage < one.stages(); ++stage) {
        for (int replica = 0; replica < one.placement.replicas(); ++replica) {
          if (!std::ranges::equal(compute.parameters(stage, replica),
                                  expected.parameters[static_cast<std::size_t>(stage)])) {
            return false;
          }
        }
      }
    }
    return true;
  }

  const Family& family;
  Problem wanted;
  reference::Model<float> model;
  Problem one;
  Problem all;
  Program program;
  reference::Trained expected;
};

std::vector<std::unique_ptr<Base>> bases() {
  std::vector<std::unique_ptr<Base>> list;
  for (const char* name : {"1f1b", "zb-h1", "zbv", "dualpipe", "interleaved-1f1b"}) {
    for (const Validation validation : {Validation::after, Validation::after, Validation::before}) {
      const int p = list.size() % 2 == 0 ? 2 : 4;
      list.push_back(std::make_unique<Base>(name, p, 2 * p, validation));
    }
  }
  return list;
}

class Tally {
 public:
  void add(const std::string& mutation, const Diagnostics& faults) {
    ++counts_[mutation][faults.empty() ? "accepted, same bits" : faults.front().rule];
  }
  [[nodiscard]] int of(const std::string& rule) const {
    int sum = 0;
    for (const auto& [mutation, reasons] : counts_) {
      const auto found = reasons.find(rule);
      if (found != reasons.end()) sum += found->second;
    }
    return sum;
  }
  void print() const {
    for (const auto& [mutation, reasons] : counts_) {
      std::cout << mutation << ":";
      for (const auto& [reason, times] : reasons) std::cout << "  " << reason << " " << times;
      std::cout << "\n";
    }
  }

 private:
  std::map<std::string, std::map<std::string, int>> counts_;
};

TEST(ValidatedStepsMutants, AreRejectedOrTrainTheSame) {
  const auto all = bases();
  std::mt19937_64 random(41);
  Tally tally;
  const auto judge = [&](const Base& base, const std::string& mutation, const Program& mutant) {
    const Diagnostics faults = verify(base.all, mutant).diagnostics;
    tally.add(mutation, faults);
    std::string why;
    if (faults.empty()) {
      ASSERT_TRUE(base.trains(mutant, &why)) << base.family.name << ": " << mutation << ": " << why;
    }
  };
  for (int n = 0; n < 1200; ++n) {
    const Base& base = *all[testing::draw_index(random, all.size())];
    Program mutant = base.program;
    if (n % 2 == 0) {
      const auto& mutation = testing::kRankMutations[static_cast<std::size_t>(n / 2) %
                                                     std::size(testing::kRankMutations)];
      if (!mutation.mutate(testing::draw_from(random, mutant.ranks), random)) continue;
      judge(base, mutation.name, mutant);
    } else {
      const auto& mutations = testing::program_mutations();
      const auto& mutation = mutations[static_cast<std::size_t>(n / 2) % mutations.size()];
      if (!mutation.apply(random, mutant)) continue;
      judge(base, std::string(mutation.name) + " (loose)", mutant);
    }
    if (HasFatalFailure()) return;
  }
  tally.print();
  EXPECT_GT(tally.of("step"), 0);
  EXPECT_GT(tally.of("race"), 20);
  EXPECT_GT(tally.of("version"), 20);
}

// Aimed at VALIDATE: every one of them left out, moved by one, or with another's buffers.
TEST(ValidatedStepsMutants, WhatIsDoneToAValidationIsFound) {
  for (const auto& base : bases()) {
    if (base->wanted.optimizer->validation == Validation::before) continue;
    for (std::size_t r = 0; r < base->program.ranks.size(); ++r) {
      const auto& list = base->program.ranks[r].instructions;
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].op.kind != OpKind::validate_step) continue;
        const auto is_found = [&](auto damage) {
          Program mutant = base->program;
          damage(mutant.ranks[r]);
          std::string why;
          const bool said = !verify(base->all, mutant).diagnostics.empty();
          return said || base->trains(mutant, &why);
        };
        EXPECT_TRUE(is_found([&](RankProgram& rank) {
          rank.instructions.erase(rank.instructions.begin() + static_cast<std::ptrdiff_t>(i));
        }));
        EXPECT_TRUE(is_found([&](RankProgram& rank) { rank.instructions[i].waits.count = 0; }));
        EXPECT_TRUE(is_found([&](RankProgram& rank) {
          if (i + 1 < rank.instructions.size()) {
            std::swap(rank.instructions[i], rank.instructions[i + 1]);
          }
        }));
        EXPECT_TRUE(is_found([&](RankProgram& rank) {
          const Range body = rank.instructions[i].body;
          std::swap(rank.accesses[body.first], rank.accesses[body.first + body.count - 1]);
        }));
      }
    }
  }
}

}  // namespace
}  // namespace counterflow

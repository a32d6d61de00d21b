#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ir/placement.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

// A schedule family: a published recipe from (ranks, microbatches, chunks) to an order of compute.
namespace counterflow {

// The numbers a recipe works from.
struct Shape {
  int ranks = 0;         // p
  int microbatches = 0;  // m
  int chunks = 1;        // v, stages a rank
  int group_size = 0;    // g, for families that group microbatches; 0: the family's default
};

// A published closed form, shown beside the simulated figure and never instead of it.
struct Formula {
  Time idle{0};        // of a rank
  std::string source;  // with its condition
};

// What a family without restrictions, or without a closed form, answers.
[[nodiscard]] inline std::optional<std::string> takes_any_shape(const Shape& /*shape*/) {
  return std::nullopt;
}
[[nodiscard]] inline std::optional<Formula> has_no_formula(const Problem& /*problem*/) {
  return std::nullopt;
}

struct Family {
  std::string_view name;
  std::string_view title;                 // as papers write it: "1F1B", "ZB-H1"
  std::vector<std::string_view> aliases;  // other spellings, PyTorch's class name among them
  std::string_view summary;               // one sentence
  std::string_view constraints;           // "none", "p even, m >= 2p", ...
  std::string_view formula_text;          // "(p-1)(F+B)", empty if none is published
  std::string_view source;                // paper, section; repository

  PlacementKind placement = PlacementKind::loop;
  int default_chunks = 1;
  bool takes_groups = false;     // uses `group_size`
  bool takes_chunks = false;     // else `chunks` other than default_chunks is an error
  bool splits_backward = false;  // emits I and W, so split_backward: false is an error
  bool fuses_pairs = false;
  bool forward_only = false;
  std::string_view sibling = {};  // the family to offer where the number of chunks does not fit

  // Why this shape is impossible, naming the rule and the nearest legal values; empty if it is
  // fine.
  std::optional<std::string> (*refuse)(const Shape&) = takes_any_shape;
  // The order for a legal shape; every stage trainable. O(ops).
  Schedule (*generate)(const Shape&) = nullptr;
  // In its place where costs and memory limits decide. Called with the family's own placement.
  Schedule (*generate_for)(const Problem&) = nullptr;
  // The closed form, where its condition holds for this problem.
  std::optional<Formula> (*formula)(const Problem&) = has_no_formula;
};

}  // namespace counterflow

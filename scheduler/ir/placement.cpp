#include "scheduler/ir/placement.h"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace counterflow {
namespace {

constexpr std::array<std::pair<PlacementKind, std::string_view>, 5> kNames{{
    {PlacementKind::loop, "loop"},
    {PlacementKind::v, "v"},
    {PlacementKind::wave, "wave"},
    {PlacementKind::bidirectional, "bidirectional"},
    {PlacementKind::list, "list"},
}};

void check_chunks(PlacementKind kind, int ranks, int chunks) {
  if (ranks < 1 || chunks < 1) {
    throw std::invalid_argument("a placement needs at least one rank and one stage a rank");
  }
  if (kind == PlacementKind::list) {
    throw std::invalid_argument("a placement of kind list is made from its list");
  }
  if (kind == PlacementKind::v && chunks != 2) {
    throw std::invalid_argument("the v placement has 2 stages a rank, not " +
                                std::to_string(chunks));
  }
  if (kind == PlacementKind::wave && chunks % 2 != 0) {
    throw std::invalid_argument("the wave placement has an even number of stages a rank, not " +
                                std::to_string(chunks));
  }
  if (kind == PlacementKind::bidirectional && chunks != 1) {
    throw std::invalid_argument("the bidirectional placement has 1 stage a rank, twice, not " +
                                std::to_string(chunks));
  }
  if (kind == PlacementKind::bidirectional && ranks % 2 != 0) {
    throw std::invalid_argument("the bidirectional placement needs an even number of ranks, not " +
                                std::to_string(ranks));
  }
}

// The rank of a stage on a zig-zag over the ranks: down, back up, down again.
Rank zig_zag(Stage stage, int ranks) {
  const int along = stage % ranks;
  return (stage / ranks) % 2 == 0 ? along : ranks - 1 - along;
}

}  // namespace

std::string_view name(PlacementKind kind) {
  for (const auto& [known, text] : kNames) {
    if (known == kind) return text;
  }
  return "";
}

std::optional<PlacementKind> placement_kind(std::string_view text) {
  for (const auto& [kind, known] : kNames) {
    if (known == text) return kind;
  }
  return std::nullopt;
}

Placement::Placement(PlacementKind kind, int ranks, int chunks)
    : kind_(kind), ranks_(ranks), stages_(ranks * chunks) {
  check_chunks(kind, ranks, chunks);
  rank_of_.reserve(static_cast<std::size_t>(replicas()) * static_cast<std::size_t>(stages_));
  for (Stage stage = 0; stage < stages_; ++stage) {
    const bool zig = kind == PlacementKind::v || kind == PlacementKind::wave;
    rank_of_.push_back(zig ? zig_zag(stage, ranks) : stage % ranks);
  }
  if (kind == PlacementKind::bidirectional) {
    for (Stage stage = 0; stage < stages_; ++stage) rank_of_.push_back(ranks - 1 - stage);
  }
  collect_chunks();
}

Placement::Placement(int ranks, std::vector<Rank> rank_of_stage)
    : ranks_(ranks),
      stages_(static_cast<int>(rank_of_stage.size())),
      rank_of_(std::move(rank_of_stage)) {
  if (ranks < 1) throw std::invalid_argument("a placement needs at least one rank");
  for (std::size_t stage = 0; stage < rank_of_.size(); ++stage) {
    if (rank_of_[stage] < 0 || rank_of_[stage] >= ranks) {
      throw std::invalid_argument("stage " + std::to_string(stage) + " is placed on rank " +
                                  std::to_string(rank_of_[stage]) + "; ranks are 0.." +
                                  std::to_string(ranks - 1));
    }
  }
  collect_chunks();
}

Placement::Placement(const Placement& one, int copies) : Placement(one) {
  if (copies < 1 || one.copies_ != 1) {
    throw std::invalid_argument("copies are made of a single placement, one at least, not " +
                                std::to_string(copies) + " of " + std::to_string(one.copies_));
  }
  copies_ = copies;
  ranks_ = one.ranks_ * copies;
  rank_of_.clear();
  for (int copy = 0; copy < copies; ++copy) {
    for (const Rank rank : one.rank_of_) rank_of_.push_back(copy * one.ranks_ + rank);
  }
  collect_chunks();
}

void Placement::collect_chunks() {
  chunks_.assign(static_cast<std::size_t>(ranks_), {});
  for (Stage stage = 0; stage < stages_; ++stage) {
    for (int replica = 0; replica < replicas(); ++replica) {
      chunks_[static_cast<std::size_t>(rank_of(stage, replica))].push_back(
          {stage, static_cast<std::uint8_t>(replica)});
    }
  }
}

}  // namespace counterflow

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

enum class PlacementKind : std::uint8_t { loop, v, wave, bidirectional, list };

[[nodiscard]] std::string_view name(PlacementKind kind);
[[nodiscard]] std::optional<PlacementKind> placement_kind(std::string_view name);

// One copy of one stage on a rank.
struct Chunk {
  Stage stage = 0;
  std::uint8_t replica = 0;
  friend constexpr bool operator==(const Chunk&, const Chunk&) = default;
};

// Which rank holds which stage.
//   loop           stage s on rank s mod p (chunk c of rank r is stage c*p + r)
//   v, wave        zig-zag: s on rank s, then back, 2p-1-s, and so on; v has two chunks a rank
//   bidirectional  every stage twice: replica 0 of stage s on rank s, replica 1 on rank p-1-s
//   list           whatever an explicit stage -> rank list says
// For data parallelism there may be several copies of all this side by side. Copy c has ranks and
// replicas of its own, those of copy 0 counted on: with p ranks and r replicas in each, rank c*p +
// k holds as replica c*r + i what rank k holds as replica i.
class Placement {
 public:
  Placement() = default;
  // A placement of a named kind with `chunks` stages a rank. Throws std::invalid_argument where the
  // kind does not exist for these numbers (v needs two chunks, bidirectional one and an even p).
  Placement(PlacementKind kind, int ranks, int chunks);
  // An explicit map, one rank for each stage. Throws std::invalid_argument for a rank outside
  // 0..p-1.
  Placement(int ranks, std::vector<Rank> rank_of_stage);
  // So many copies of a placement that is single itself. Throws std::invalid_argument below one.
  Placement(const Placement& one, int copies);

  [[nodiscard]] PlacementKind kind() const { return kind_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int stages() const { return stages_; }
  [[nodiscard]] int copies() const { return copies_; }
  // Copies of each stage within a copy of the placement: one for each direction.
  [[nodiscard]] int directions() const { return kind_ == PlacementKind::bidirectional ? 2 : 1; }
  // Copies of each stage in all.
  [[nodiscard]] int replicas() const { return copies_ * directions(); }
  [[nodiscard]] Rank rank_of(Stage stage, int replica = 0) const {
    return rank_of_[index(stage, replica)];
  }
  // The stage copies a rank holds, in chunk order: ascending stage, replica 0 first.
  [[nodiscard]] std::span<const Chunk> chunks_of(Rank rank) const {
    return chunks_[static_cast<std::size_t>(rank)];
  }

 private:
  void collect_chunks();
  [[nodiscard]] std::size_t index(Stage stage, int replica) const {
    return static_cast<std::size_t>(replica) * static_cast<std::size_t>(stages_) +
           static_cast<std::size_t>(stage);
  }

  PlacementKind kind_ = PlacementKind::list;
  int ranks_ = 0;
  int stages_ = 0;
  int copies_ = 1;
  std::vector<Rank> rank_of_;               // [replica * stages + stage]
  std::vector<std::vector<Chunk>> chunks_;  // [rank]
};

}  // namespace counterflow

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/ir/program.h"
#include "scheduler/problem/links.h"

namespace counterflow::sim {

// How long collectives take with the links to themselves; what else moves at the time neither slows
// them nor is slowed. For n members, s bytes (the whole vector), ring hops of latency a and
// rate b, both the worst on the ring with all its hops in use at once:
//   all_reduce                  2 (n-1) (a + s / (n b))
//   reduce_scatter, all_gather    (n-1) (a + s / (n b))
//   broadcast                     (n-1) a + s / b        (a pipelined ring)
//   barrier                     ceil(log2 n) a           (dissemination)
//   all_to_all                  the sum over its n-1 steps of a_k + s / (n b_k): in step k every
//                               member sends to the k-th after it, all at once
// Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH,
// IJHPCA 19(1), 2005; Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of
// workstations, JPDC 69(2), 2009.
class CollectiveCosts {
 public:
  explicit CollectiveCosts(const Links& links) : links_(links) {}
  // The collectives of one instruction, one after the other.
  [[nodiscard]] Time duration(const std::vector<Rank>& members,
                              std::span<const Collective> body) const;

 private:
  struct Hop {
    double latency = 0;      // ns
    double ns_per_byte = 0;  // 1 / rate
  };
  // The worst of the hops from each member to the k-th after it, all in use at once.
  [[nodiscard]] Hop shift(const std::vector<Rank>& members, std::size_t k) const;
  [[nodiscard]] double slowest(const std::vector<Rank>& members, std::size_t k) const;

  const Links& links_;
};

}  // namespace counterflow::sim

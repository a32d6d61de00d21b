#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <vector>

#include "simulator/max_min.h"

namespace counterflow::sim {

// Messages as fluids: at every instant those under way share the links they cross max-min fairly,
// and each ends when its bytes have flowed. Instants are whole nanoseconds; an end is rounded to
// the nearest one, so each change of a flow's rate moves its end by half a nanosecond at most.
//
// Rates are found anew only when a flow begins or ends or a capacity changes, and only for the
// flows that share a link with it, directly or through others; the rates of the rest cannot change.
class FlowNetwork {
 public:
  using LinkId = std::uint32_t;
  using FlowId = std::uint32_t;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Capacities in bytes a nanosecond.
  explicit FlowNetwork(std::vector<double> capacities);

  // No flows, the capacities it was made with.
  void reset();
  // A flow of some bytes begins on a route of at least one link, none of them twice; `tag` is the
  // caller's name for it. Times never go back.
  FlowId begin(std::int64_t at, std::span<const LinkId> route, double bytes, std::uint32_t tag);
  // The flow is given up.
  void cancel(std::int64_t at, FlowId flow);
  void set_capacity(std::int64_t at, LinkId link, double capacity);
  // When the next flow ends as things stand; kNever: none does.
  [[nodiscard]] std::int64_t next_end();
  // Takes out all flows that end then and returns their tags, in the order they began; the span
  // lasts until the next call. Only after next_end() has named an instant.
  std::span<const std::uint32_t> finish_next();
  // The last instant anything happened at.
  [[nodiscard]] std::int64_t now() const { return now_; }

 private:
  struct Flow {
    std::vector<LinkId> route;
    double left = 0;  // bytes at `since`
    double rate = 0;
    std::int64_t since = 0;
    std::uint64_t number = 0;    // in the order they begin
    std::uint32_t revision = 0;  // of the end in ends_ that counts
    std::uint32_t tag = 0;
    std::uint32_t visit = 0;  // the solve that met it last
    bool active = false;
  };
  struct Link {
    double capacity = 0;
    std::vector<FlowId> flows;
    std::uint32_t visit = 0;
    std::uint32_t local = 0;  // its number in the part being solved
    bool changed = false;
  };
  struct End {
    std::int64_t at;
    std::uint64_t number;
    FlowId flow;
    std::uint32_t revision;
    bool operator>(const End& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  void touch(std::int64_t at, LinkId link);
  // Brings the rates of all flows that the touched links reach up to date.
  void settle();
  void collect();
  void set_rate(FlowId flow, double rate);
  [[nodiscard]] std::int64_t end_of(const Flow& flow) const;

  std::vector<double> capacities_;  // as made
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<FlowId> unused_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<LinkId> changed_;
  std::vector<std::uint32_t> finished_;
  std::int64_t now_ = 0;
  std::uint64_t begun_ = 0;
  std::uint32_t visit_ = 0;
  // Scratch of settle(): the part of the network that is solved.
  std::vector<LinkId> part_links_;
  std::vector<FlowId> part_flows_;
  std::vector<double> part_capacities_;
  std::vector<std::uint32_t> first_, crossed_;
  MaxMinSolver solver_;
};

}  // namespace counterflow::sim

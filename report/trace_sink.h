#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "report/draw.h"
#include "report/trace_label.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// One instruction on a track, and the messages (numbered from 0) that leave and arrive with it.
struct TraceSlice {
  std::size_t rank = 0;
  std::size_t track = 0;
  Interval when;
  const TraceLabel& label;
  std::span<const std::uint64_t> sent;
  std::span<const std::uint64_t> received;
};

// A trace format: it is told what there is to show, in this order, and writes it its own way.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void rank(std::size_t rank) = 0;
  virtual void track(std::size_t rank, std::size_t track, std::string_view label) = 0;
  virtual void memory(std::size_t rank, const MemorySample& sample) = 0;
  // By ascending begin. A message leaves before it arrives.
  virtual void slice(const TraceSlice& slice) = 0;
  // A message that leaves at `at`, after the slice that receives it has begun on this track.
  virtual void arrival(std::size_t rank, std::size_t track, Time at, std::uint64_t message) = 0;

 protected:
  TraceSink() = default;
  TraceSink(const TraceSink&) = default;
  TraceSink& operator=(const TraceSink&) = default;
};

// Shows a run. O(n log n).
void write_trace(const DrawContext& run, TraceSink& sink);

}  // namespace counterflow

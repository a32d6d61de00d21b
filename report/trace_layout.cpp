#include "report/trace_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace counterflow {
namespace {

template <typename T>
using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<>>;

// The tracks of one stream.
class Tracks {
 public:
  // The first track that is free from the begin of `when` on; to be asked by ascending begin.
  [[nodiscard]] std::uint32_t place(Interval when) {
    while (!busy_.empty() && busy_.top().first <= when.begin) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    std::uint32_t track = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      track = free_.top();
      free_.pop();
    }
    busy_.emplace(when.end, track);
    return track;
  }
  [[nodiscard]] std::uint32_t count() const { return std::max(count_, 1U); }

 private:
  std::uint32_t count_ = 0;
  MinHeap<std::pair<Time, std::uint32_t>> busy_;  // by end
  MinHeap<std::uint32_t> free_;
};

bool receives(const RankProgram& rank, const Instruction& instruction) {
  const auto transfers = rank.transfers_of(instruction);
  return std::any_of(transfers.begin(), transfers.end(),
                     [](const Transfer& transfer) { return !transfer.is_send; });
}

std::vector<TraceLayout::Slice> what_ran(const Timeline& timeline) {
  std::vector<TraceLayout::Slice> slices;
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    const auto& instructions = timeline.ranks[r].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].begin.count() < 0) continue;
      slices.push_back({.rank = static_cast<std::uint32_t>(r),
                        .instruction = static_cast<std::uint32_t>(i),
                        .track = 0,
                        .when = instructions[i]});
    }
  }
  return slices;
}

// Empty slices first: they end before whatever else begins at that time.
void sort_for_placing(std::vector<TraceLayout::Slice>& slices) {
  const auto key = [](const TraceLayout::Slice& slice) {
    return std::tuple(slice.when.begin, slice.when.length().count() > 0);
  };
  std::stable_sort(slices.begin(), slices.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

void sort_for_writing(const Program& program, std::vector<TraceLayout::Slice>& slices) {
  const auto key = [&](const TraceLayout::Slice& slice) {
    const RankProgram& rank = program.ranks[slice.rank];
    return std::tuple(slice.when.begin, receives(rank, rank.instructions[slice.instruction]),
                      slice.when.length().count() == 0);
  };
  std::stable_sort(slices.begin(), slices.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

std::string label_of(const Stream& stream, std::uint32_t track) {
  const std::string label = stream.label.empty() ? std::string(name(stream.role)) : stream.label;
  return track == 0 ? label : fmt::format("{} ({})", label, track + 1);
}

}  // namespace

TraceLayout lay_out_trace(const Program& program, const Timeline& timeline) {
  TraceLayout layout;
  layout.slices = what_ran(timeline);
  sort_for_placing(layout.slices);

  std::vector<std::vector<Tracks>> streams;  // [rank][stream]
  for (const RankProgram& rank : program.ranks) streams.emplace_back(rank.streams.size());
  const auto stream_of = [&](const TraceLayout::Slice& slice) {
    return program.ranks[slice.rank].instructions[slice.instruction].stream;
  };
  for (auto& slice : layout.slices) {
    slice.track = streams[slice.rank][stream_of(slice)].place(slice.when);
  }
  sort_for_writing(program, layout.slices);

  std::vector<std::vector<std::uint32_t>> first_track(program.ranks.size());  // [rank][stream]
  layout.tracks.resize(program.ranks.size());
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    for (std::size_t s = 0; s < streams[r].size(); ++s) {
      first_track[r].push_back(static_cast<std::uint32_t>(layout.tracks[r].size()));
      for (std::uint32_t track = 0; track < streams[r][s].count(); ++track) {
        layout.tracks[r].push_back(label_of(program.ranks[r].streams[s], track));
      }
    }
  }
  for (auto& slice : layout.slices) slice.track += first_track[slice.rank][stream_of(slice)];
  return layout;
}

}  // namespace counterflow

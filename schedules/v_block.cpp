#include "schedules/v_block.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "schedules/slot_grid.h"
#include "schedules/turns.h"

namespace counterflow {
namespace {

constexpr int kNotPlaced = std::numeric_limits<int>::max();
constexpr std::array<std::size_t, 2> kChunks = {0, 1};

enum Part : std::uint8_t { kForward, kBackward, kWeight };

// One op of the repetition; `chunk` as in BlockRank.
struct Piece {
  Part part = kForward;
  Rank rank = 0;
  std::size_t chunk = 0;
  Microbatch microbatch = 0;
};

class Repetition {
 public:
  Repetition(const std::vector<BlockRank>& block, BlockBackward backward, int microbatches);

  // Moves the W's, and all that starts before the first gradient is back at stage 0, to the
  // earliest free slots.
  void squeeze_warm_up();
  // Schedules anew, greedily, what stands after the last microbatch entered.
  void replace_cool_down();
  [[nodiscard]] Schedule order() const;

 private:
  struct RankState {
    std::vector<std::uint8_t> busy;  // [slot]
    std::vector<int> held;           // [slot] chunks whose activations are held
  };
  // What the cool-down has still to place on a rank.
  struct Rest {
    std::array<std::deque<Piece>, 6> queues;  // [part * 2 + chunk], see queue()
    int held = 0;
    [[nodiscard]] std::deque<Piece>& queue(Part part, std::size_t chunk) {
      return queues[2 * std::size_t{part} + chunk];
    }
    [[nodiscard]] const std::deque<Piece>& queue(Part part, std::size_t chunk) const {
      return queues[2 * std::size_t{part} + chunk];
    }
  };

  [[nodiscard]] Part last_part() const { return split_ ? kWeight : kBackward; }
  [[nodiscard]] int length(Part part) const { return !split_ && part == kBackward ? 2 : 1; }
  [[nodiscard]] Stage stage(const Piece& piece) const {
    return piece.chunk == 0 ? piece.rank : 2 * ranks_ - 1 - piece.rank;
  }
  [[nodiscard]] int& slot(Part part, Stage stage, Microbatch microbatch) {
    return slots_[index(part, stage, microbatch)];
  }
  [[nodiscard]] int slot(Part part, Stage stage, Microbatch microbatch) const {
    return slots_[index(part, stage, microbatch)];
  }
  [[nodiscard]] std::size_t index(Part part, Stage stage, Microbatch microbatch) const {
    return (static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(2 * ranks_) +
            static_cast<std::size_t>(stage)) *
               3 +
           part;
  }
  // The first slot in which the inputs are there, or kNotPlaced.
  [[nodiscard]] int ready(const Piece& piece) const;
  [[nodiscard]] std::vector<Piece> pieces() const;
  // Those that begin at `from` or later, slot by slot and rank by rank.
  [[nodiscard]] std::vector<Piece> pieces_by_slot(int from) const;

  void place_block(const std::vector<BlockRank>& block);
  void count_held();
  void move_up(const Piece& piece);
  [[nodiscard]] std::vector<Rest> take_off(int from);
  [[nodiscard]] std::optional<Piece> choose(const Rest& rest, int now) const;

  int ranks_;
  bool split_;
  int microbatches_;
  int capacity_ = 0;               // most chunks the endless block holds on a rank
  int horizon_ = 0;                // slots in use
  int first_back_ = 0;             // slot of the first backward of stage 0
  std::vector<int> slots_;         // [index()] begin
  std::vector<int> original_;      // [index()] before the cool-down was taken off
  std::vector<RankState> states_;  // [rank]
};

// W takes the first residue that is free after its I, chunk 1 first.
std::array<int, 2> weight_slots(const BlockRank& rank) {
  std::array<bool, kBlockPeriod> used{};
  for (const std::size_t chunk : kChunks) {
    used[static_cast<std::size_t>(rank.forward[chunk] % kBlockPeriod)] = true;
    used[static_cast<std::size_t>(rank.backward[chunk] % kBlockPeriod)] = true;
  }
  std::array<int, 2> weights{};
  for (const std::size_t chunk : {1U, 0U}) {
    int slot = rank.backward[chunk] + 1;
    while (used[static_cast<std::size_t>(slot % kBlockPeriod)]) ++slot;
    used[static_cast<std::size_t>(slot % kBlockPeriod)] = true;
    weights[chunk] = slot;
  }
  return weights;
}

// The most chunks a rank holds when its block is repeated for ever; [begin, end) of each chunk.
int steady_peak(const std::array<int, 2>& begin, const std::array<int, 2>& end) {
  std::array<int, kBlockPeriod> held{};
  for (const std::size_t chunk : kChunks) {
    for (int slot = begin[chunk]; slot < end[chunk]; ++slot) {
      ++held[static_cast<std::size_t>(slot % kBlockPeriod)];
    }
  }
  return *std::max_element(held.begin(), held.end());
}

Repetition::Repetition(const std::vector<BlockRank>& block, BlockBackward backward,
                       int microbatches)
    : ranks_(static_cast<int>(block.size())),
      split_(backward == BlockBackward::split),
      microbatches_(microbatches),
      first_back_(block.front().backward[0]),
      slots_(static_cast<std::size_t>(microbatches) * 6 * block.size(), kNotPlaced),
      states_(block.size()) {
  place_block(block);
  count_held();
}

void Repetition::place_block(const std::vector<BlockRank>& block) {
  for (Rank r = 0; r < ranks_; ++r) {
    const BlockRank& of = block[static_cast<std::size_t>(r)];
    const std::array<int, 2> weights = split_ ? weight_slots(of) : std::array<int, 2>{};
    std::array<int, 2> end{};
    for (const std::size_t chunk : kChunks) {
      end[chunk] = split_ ? weights[chunk] + 1 : of.backward[chunk] + 2;
      const Stage s = stage({.rank = r, .chunk = chunk});
      for (Microbatch i = 0; i < microbatches_; ++i) {
        const int shift = kBlockPeriod * i;
        slot(kForward, s, i) = of.forward[chunk] + shift;
        slot(kBackward, s, i) = of.backward[chunk] + shift;
        if (split_) slot(kWeight, s, i) = weights[chunk] + shift;
      }
      horizon_ = std::max(horizon_, end[chunk] + kBlockPeriod * (microbatches_ - 1));
    }
    capacity_ = std::max(capacity_, steady_peak(of.forward, end));
  }
}

void Repetition::count_held() {
  for (RankState& state : states_) {
    state.busy.assign(static_cast<std::size_t>(horizon_), 0);
    state.held.assign(static_cast<std::size_t>(horizon_), 0);
  }
  for (const Piece& piece : pieces()) {
    RankState& state = states_[static_cast<std::size_t>(piece.rank)];
    const Stage s = stage(piece);
    const int begin = slot(piece.part, s, piece.microbatch);
    const int end = begin + length(piece.part);
    std::fill(state.busy.begin() + begin, state.busy.begin() + end, std::uint8_t{1});
    if (piece.part != last_part()) continue;
    for (int t = slot(kForward, s, piece.microbatch); t < end; ++t) {
      ++state.held[static_cast<std::size_t>(t)];
    }
  }
}

std::vector<Piece> Repetition::pieces() const {
  std::vector<Piece> all;
  all.reserve(slots_.size());
  for (Microbatch i = 0; i < microbatches_; ++i) {
    for (Rank r = 0; r < ranks_; ++r) {
      for (const std::size_t chunk : kChunks) {
        all.push_back({kForward, r, chunk, i});
        all.push_back({kBackward, r, chunk, i});
        if (split_) all.push_back({kWeight, r, chunk, i});
      }
    }
  }
  return all;
}

std::vector<Piece> Repetition::pieces_by_slot(int from) const {
  struct Keyed {
    int slot;
    Piece piece;
  };
  std::vector<Keyed> keyed;
  for (const Piece& piece : pieces()) {
    const int place = slot(piece.part, stage(piece), piece.microbatch);
    if (place >= from) keyed.push_back({place, piece});
  }
  std::sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    return std::tie(a.slot, a.piece.rank) < std::tie(b.slot, b.piece.rank);
  });
  std::vector<Piece> sorted;
  sorted.reserve(keyed.size());
  for (const Keyed& item : keyed) sorted.push_back(item.piece);
  return sorted;
}

int Repetition::ready(const Piece& piece) const {
  const Stage s = stage(piece);
  const auto after = [&](Part part, Stage of) {
    const int begin = slot(part, of, piece.microbatch);
    return begin == kNotPlaced ? kNotPlaced : begin + length(part);
  };
  switch (piece.part) {
    case kForward:
      return s == 0 ? 0 : after(kForward, s - 1);
    case kBackward:
      return s == 2 * ranks_ - 1 ? after(kForward, s) : after(kBackward, s + 1);
    case kWeight:
      return after(kBackward, s);
  }
  return kNotPlaced;
}

void Repetition::squeeze_warm_up() {
  for (const Piece& piece : pieces_by_slot(0)) {
    const int own = slot(piece.part, stage(piece), piece.microbatch);
    if (piece.part == kWeight || own < first_back_) move_up(piece);
  }
}

void Repetition::move_up(const Piece& piece) {
  RankState& state = states_[static_cast<std::size_t>(piece.rank)];
  int& place = slot(piece.part, stage(piece), piece.microbatch);
  const int own = place;
  const int size = length(piece.part);
  int earliest = ready(piece);
  if (piece.part == kForward) {
    int reach = own;
    while (reach > earliest && state.held[static_cast<std::size_t>(reach - 1)] < capacity_) --reach;
    earliest = reach;
  }
  std::fill_n(state.busy.begin() + own, size, std::uint8_t{0});
  const auto is_free = [&](int from) {
    return std::all_of(state.busy.begin() + from, state.busy.begin() + from + size,
                       [](std::uint8_t busy) { return busy == 0; });
  };
  place = earliest;
  while (!is_free(place)) ++place;
  std::fill_n(state.busy.begin() + place, size, std::uint8_t{1});
  const auto begin = state.held.begin();
  if (piece.part == kForward) std::for_each(begin + place, begin + own, [](int& held) { ++held; });
  if (piece.part == last_part()) {
    std::for_each(begin + place + size, begin + own + size, [](int& held) { --held; });
  }
}

// Takes off what begins at `from` or later; per rank, what is left to place, in order.
std::vector<Repetition::Rest> Repetition::take_off(int from) {
  std::vector<Rest> rests(static_cast<std::size_t>(ranks_));
  for (const Piece& piece : pieces_by_slot(from)) {
    Rest& rest = rests[static_cast<std::size_t>(piece.rank)];
    slot(piece.part, stage(piece), piece.microbatch) = kNotPlaced;
    rest.queue(piece.part, piece.chunk).push_back(piece);
  }
  // Held is what has begun its F, not its W.
  for (Rest& rest : rests) {
    for (const std::size_t chunk : kChunks) {
      rest.held += static_cast<int>(rest.queue(kWeight, chunk).size()) -
                   static_cast<int>(rest.queue(kForward, chunk).size());
    }
  }
  return rests;
}

// The next op of a rank in slot `now`: of its F and I the first in the original order, else a W.
std::optional<Piece> Repetition::choose(const Rest& rest, int now) const {
  std::optional<Piece> best;
  int best_original = kNotPlaced;
  const auto ready_front = [&](Part part, std::size_t chunk) -> const Piece* {
    const auto& queue = rest.queue(part, chunk);
    return queue.empty() || ready(queue.front()) > now ? nullptr : &queue.front();
  };
  for (const Part part : {kForward, kBackward}) {
    if (part == kForward && rest.held >= capacity_) continue;
    for (const std::size_t chunk : kChunks) {
      const Piece* piece = ready_front(part, chunk);
      if (piece == nullptr) continue;
      const int original = original_[index(part, stage(*piece), piece->microbatch)];
      if (original >= best_original) continue;
      best = *piece;
      best_original = original;
    }
  }
  for (const std::size_t chunk : {1U, 0U}) {
    const Piece* piece = ready_front(kWeight, chunk);
    if (!best && piece != nullptr) best = *piece;
  }
  return best;
}

void Repetition::replace_cool_down() {
  original_ = slots_;
  int now = kBlockPeriod * (microbatches_ - 1);
  std::vector<Rest> rests = take_off(now);
  std::size_t left = 0;
  for (const Rest& rest : rests) {
    for (const auto& queue : rest.queues) left += queue.size();
  }
  for (int idle_slots = 0; left > 0; ++now) {
    ++idle_slots;
    for (Rest& rest : rests) {
      const std::optional<Piece> piece = choose(rest, now);
      if (!piece) continue;
      slot(piece->part, stage(*piece), piece->microbatch) = now;
      rest.held += piece->part == kForward ? 1 : piece->part == kWeight ? -1 : 0;
      rest.queue(piece->part, piece->chunk).pop_front();
      --left;
      idle_slots = 0;
    }
    if (idle_slots > 1) throw std::logic_error("the cool-down of a V block cannot be placed");
  }
}

Schedule Repetition::order() const {
  const std::array<OpKind, 3> kinds = {
      OpKind::forward, split_ ? OpKind::backward_input : OpKind::backward, OpKind::backward_weight};
  std::vector<std::vector<PlacedOp>> ranks(static_cast<std::size_t>(ranks_));
  for (const Piece& piece : pieces()) {
    const Stage s = stage(piece);
    const OpKind kind = kinds[piece.part];
    ranks[static_cast<std::size_t>(piece.rank)].push_back(
        {slot(piece.part, s, piece.microbatch), compute_op(kind, s, piece.microbatch)});
  }
  return order_by_slot(std::move(ranks));
}

}  // namespace

Schedule repeat_block(const std::vector<BlockRank>& block, BlockBackward backward,
                      int microbatches) {
  Repetition repetition(block, backward, microbatches);
  repetition.squeeze_warm_up();
  if (backward == BlockBackward::split) repetition.replace_cool_down();
  return repetition.order();
}

}  // namespace counterflow

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/ir/program.h"
#include "tests/support/random_problems.h"

// Small random damage to programs. Each mutation says whether it changed anything.
namespace counterflow::testing {

using Random = std::mt19937_64;

inline std::size_t draw_index(Random& random, std::size_t size) {
  return static_cast<std::size_t>(draw(random, 0, static_cast<std::int64_t>(size) - 1));
}
template <typename T>
T& draw_from(Random& random, std::vector<T>& list) {
  return list[draw_index(random, list.size())];
}

// Damage to lists of anything, a list a rank.
template <typename T>
struct ListMutations {
  using Lists = std::vector<std::vector<T>>;

  static std::vector<T>* some_list(Random& random, Lists& lists, std::size_t at_least) {
    auto& list = draw_from(random, lists);
    return list.size() < at_least ? nullptr : &list;
  }
  static bool drop(Random& random, Lists& lists) {
    auto* list = some_list(random, lists, 1);
    if (list == nullptr) return false;
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(draw_index(random, list->size())));
    return true;
  }
  static bool duplicate(Random& random, Lists& lists) {
    auto* list = some_list(random, lists, 1);
    if (list == nullptr) return false;
    const T copy = draw_from(random, *list);
    insert_anywhere(random, *list, copy);
    return true;
  }
  // Neighbours as often as others: they are what is likely to pass.
  static bool swap(Random& random, Lists& lists) {
    auto* list = some_list(random, lists, 2);
    if (list == nullptr) return false;
    const std::size_t a = draw_index(random, list->size() - 1);
    const std::size_t b = draw(random, 0, 1) == 0 ? a + 1 : draw_index(random, list->size());
    std::swap((*list)[a], (*list)[b]);
    return a != b;
  }
  static bool move(Random& random, Lists& lists) {
    auto* list = some_list(random, lists, 2);
    if (list == nullptr) return false;
    const auto from = static_cast<std::ptrdiff_t>(draw_index(random, list->size()));
    T moved = std::move((*list)[static_cast<std::size_t>(from)]);
    list->erase(list->begin() + from);
    const std::ptrdiff_t to =
        std::clamp<std::ptrdiff_t>(from + draw(random, -5, 5), 0, std::ssize(*list));
    list->insert(list->begin() + to, std::move(moved));
    return from != to;
  }
  static bool rerank(Random& random, Lists& lists) {
    auto* list = some_list(random, lists, 1);
    if (list == nullptr || lists.size() < 2) return false;
    const std::size_t from = draw_index(random, list->size());
    const T moved = (*list)[from];
    auto& target = draw_from(random, lists);
    if (&target == list) return false;
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(from));
    insert_anywhere(random, target, moved);
    return true;
  }

 private:
  static void insert_anywhere(Random& random, std::vector<T>& list, const T& what) {
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(draw_index(random, list.size() + 1)),
                what);
  }
};

// An instruction with what it points to, so that it can be moved about.
struct LooseInstruction {
  Instruction head;
  std::vector<EventWait> waits;
  std::vector<Transfer> transfers;
};
using LooseProgram = std::vector<std::vector<LooseInstruction>>;

inline LooseProgram loosen(const Program& program) {
  LooseProgram loose;
  for (const RankProgram& rank : program.ranks) {
    auto& list = loose.emplace_back();
    for (const Instruction& i : rank.instructions) {
      const auto waits = rank.waits_of(i);
      const auto transfers = rank.transfers_of(i);
      list.push_back({i, {waits.begin(), waits.end()}, {transfers.begin(), transfers.end()}});
    }
  }
  return loose;
}

// Messages are numbered by their place again: a fault of numbers alone would hide all others.
inline void number_messages(Program& program) {
  for (RankProgram& rank : program.ranks) {
    std::map<std::tuple<CommunicatorId, std::uint16_t, bool>, std::uint32_t> next;
    for (const Instruction& i : rank.instructions) {
      for (std::uint32_t t = i.body.first; t < i.body.first + rank.transfers_of(i).size(); ++t) {
        Transfer& end = rank.transfers[t];
        end.sequence = next[{i.communicator, end.peer, end.is_send}]++;
      }
    }
  }
}

inline Program tighten(const Program& original, const LooseProgram& loose) {
  Program program = original;
  for (std::size_t rank = 0; rank < loose.size(); ++rank) {
    RankProgram& target = program.ranks[rank];
    target.instructions.clear();
    target.waits.clear();
    target.transfers.clear();
    for (const LooseInstruction& one : loose[rank]) {
      Instruction i = one.head;
      i.stream = static_cast<StreamId>(i.stream % target.streams.size());
      i.waits = {static_cast<std::uint32_t>(target.waits.size()),
                 static_cast<std::uint32_t>(one.waits.size())};
      target.waits.insert(target.waits.end(), one.waits.begin(), one.waits.end());
      if (i.kind == InstructionKind::transfer) {
        i.body = {static_cast<std::uint32_t>(target.transfers.size()),
                  static_cast<std::uint32_t>(one.transfers.size())};
        target.transfers.insert(target.transfers.end(), one.transfers.begin(), one.transfers.end());
      }
      target.instructions.push_back(i);
    }
  }
  number_messages(program);
  return program;
}

// ---- Programs --------------------------------------------------------------------------------

using ProgramMutation = bool (*)(Random&, Program&);
struct NamedProgramMutation {
  std::string_view name;
  ProgramMutation apply;
};

template <typename Mutate>
bool mutate_loose(Random& random, Program& program, Mutate mutate) {
  LooseProgram loose = loosen(program);
  if (!mutate(random, loose)) return false;
  program = tighten(program, loose);
  return true;
}

inline LooseInstruction* some_transfer(Random& random, LooseProgram& loose) {
  std::vector<LooseInstruction*> all;
  for (auto& list : loose) {
    for (auto& one : list) {
      if (!one.transfers.empty()) all.push_back(&one);
    }
  }
  return all.empty() ? nullptr : draw_from(random, all);
}

inline LooseInstruction* some_waiting(Random& random, LooseProgram& loose) {
  std::vector<LooseInstruction*> all;
  for (auto& list : loose) {
    for (auto& one : list) {
      if (!one.waits.empty()) all.push_back(&one);
    }
  }
  return all.empty() ? nullptr : draw_from(random, all);
}

inline bool duplicate_silently(Random& random, LooseProgram& loose) {
  auto& list = draw_from(random, loose);
  if (list.empty()) return false;
  LooseInstruction copy = draw_from(random, list);
  copy.head.records = kNone;
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(draw_index(random, list.size() + 1)),
              copy);
  return true;
}

// Joins a transfer with a later one near it; who waited for that one waits for the group.
inline bool join(Random& random, LooseProgram& loose) {
  auto& list = draw_from(random, loose);
  if (list.size() < 2) return false;
  const std::size_t a = draw_index(random, list.size() - 1);
  const std::size_t b = std::min(list.size() - 1, a + static_cast<std::size_t>(draw(random, 1, 6)));
  LooseInstruction& first = list[a];
  LooseInstruction second = list[b];
  if (first.transfers.empty() || second.transfers.empty()) return false;
  first.transfers.insert(first.transfers.end(), second.transfers.begin(), second.transfers.end());
  first.waits.insert(first.waits.end(), second.waits.begin(), second.waits.end());
  if (first.head.records == kNone) {
    first.head.records = second.head.records;
  } else if (second.head.records != kNone) {
    for (LooseInstruction& one : list) {
      for (EventWait& wait : one.waits) {
        if (wait.event == second.head.records) wait.event = first.head.records;
      }
    }
  }
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(b));
  return true;
}

inline bool restream(Random& random, LooseProgram& loose) {
  auto& list = draw_from(random, loose);
  if (list.empty()) return false;
  StreamId& stream = draw_from(random, list).head.stream;
  const StreamId before = std::exchange(stream, static_cast<StreamId>(draw(random, 0, 3)));
  return stream != before;
}

inline bool relabel_compute(Random& random, LooseProgram& loose) {
  auto& list = draw_from(random, loose);
  if (list.empty()) return false;
  LooseInstruction& one = draw_from(random, list);
  if (one.head.kind != InstructionKind::run) return false;
  one.head.op.microbatch += draw(random, 0, 1) == 0 ? 1 : -1;
  return true;
}

inline bool relabel_message(Random& random, LooseProgram& loose) {
  LooseInstruction* one = some_transfer(random, loose);
  LooseInstruction* other = some_transfer(random, loose);
  if (one == nullptr || one->transfers[0].payload == other->transfers[0].payload) return false;
  if (draw(random, 0, 1) == 0) {
    std::swap(one->transfers[0].payload, other->transfers[0].payload);
  } else {
    one->transfers[0].payload = other->transfers[0].payload;
  }
  return true;
}

inline bool readdress(Random& random, LooseProgram& loose) {
  LooseInstruction* one = some_transfer(random, loose);
  if (one == nullptr) return false;
  std::uint16_t& peer = one->transfers[0].peer;
  const auto other = static_cast<std::uint16_t>(draw_index(random, loose.size()));
  return std::exchange(peer, other) != other;
}

inline bool turn_round(Random& random, LooseProgram& loose) {
  LooseInstruction* one = some_transfer(random, loose);
  if (one == nullptr) return false;
  one->transfers[0].is_send = !one->transfers[0].is_send;
  return true;
}

inline bool recommunicate(Random& random, LooseProgram& loose) {
  LooseInstruction* one = some_transfer(random, loose);
  if (one == nullptr) return false;
  one->head.communicator = one->head.communicator == 0 ? 1 : 0;
  return true;
}

inline bool resize(Random& random, LooseProgram& loose) {
  LooseInstruction* one = some_transfer(random, loose);
  if (one == nullptr) return false;
  one->transfers[0].size += Bytes{1};
  return true;
}

inline bool drop_wait(Random& random, LooseProgram& loose) {
  LooseInstruction* one = some_waiting(random, loose);
  if (one == nullptr) return false;
  one->waits.erase(one->waits.begin() +
                   static_cast<std::ptrdiff_t>(draw_index(random, one->waits.size())));
  return true;
}

inline bool redirect_wait(Random& random, LooseProgram& loose) {
  LooseInstruction* one = some_waiting(random, loose);
  if (one == nullptr) return false;
  EventWait& wait = draw_from(random, one->waits);
  const std::uint32_t before = wait.event;
  if (draw(random, 0, 7) == 0) {
    ++wait.generation;
    return true;
  }
  wait.event = static_cast<std::uint32_t>(draw(random, 0, before + 2));
  return wait.event != before;
}

// The waits of two instructions change places.
inline bool swap_waits(Random& random, LooseProgram& loose) {
  auto& list = draw_from(random, loose);
  if (list.size() < 2) return false;
  auto& a = draw_from(random, list).waits;
  auto& b = draw_from(random, list).waits;
  if (a == b) return false;
  std::swap(a, b);
  return true;
}

inline bool renumber(Random& random, Program& program) {
  auto& transfers = draw_from(random, program.ranks).transfers;
  if (transfers.empty()) return false;
  std::uint32_t& number = draw_from(random, transfers).sequence;
  number = number == 0 ? 1 : number - 1;
  return true;
}

template <bool (*mutate)(Random&, LooseProgram&)>
bool on_program(Random& random, Program& program) {
  return mutate_loose(random, program, mutate);
}

inline const std::vector<NamedProgramMutation>& program_mutations() {
  using Lists = ListMutations<LooseInstruction>;
  static const std::vector<NamedProgramMutation> all = {
      {"drop", on_program<Lists::drop>},
      {"duplicate", on_program<Lists::duplicate>},
      {"duplicate, no event", on_program<duplicate_silently>},
      {"swap", on_program<Lists::swap>},
      {"move", on_program<Lists::move>},
      {"re-rank", on_program<Lists::rerank>},
      {"regroup", on_program<join>},
      {"re-stream", on_program<restream>},
      {"relabel a compute", on_program<relabel_compute>},
      {"relabel a message", on_program<relabel_message>},
      {"re-address", on_program<readdress>},
      {"turn round", on_program<turn_round>},
      {"re-communicate", on_program<recommunicate>},
      {"resize", on_program<resize>},
      {"drop a wait", on_program<drop_wait>},
      {"redirect a wait", on_program<redirect_wait>},
      {"swap waits", on_program<swap_waits>},
      {"renumber", renumber},
  };
  return all;
}

}  // namespace counterflow::testing

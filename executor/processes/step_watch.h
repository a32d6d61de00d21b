#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "executor/interpreter.h"
#include "executor/processes/mesh_transport.h"
#include "executor/processes/peers.h"
#include "executor/processes/wire.h"
#include "executor/progress.h"

namespace counterflow::exec {

// Tells, while a step runs, whether it still gets on. A compute of this rank that takes too long is
// a failure by itself. Where a message is late or a rank gone, all are asked how far they are; what
// they answer shows where the chain of those that wait ends, and so with whom the cause lies.
class StepWatch {
 public:
  struct Context {
    const Program& program;
    const Matching& matching;
    const Prerequisites& prerequisites;
    const MeshTransport& transport;
    Peers& peers;
    int me = 0;
    int size = 1;
    Time patience{0};                      // how long a message, or a short compute, may take
    std::function<void()> ask_everyone{};  // sends a question to all that are there
  };
  // Everything given must outlive it.
  explicit StepWatch(Context context);

  void begin_step();
  // Every few milliseconds. O(instructions of the rank).
  [[nodiscard]] std::optional<Failure> look(const Interpreter& run);
  // What this rank answers to such a question.
  [[nodiscard]] PeerProgress progress(const Interpreter& run) const;

 private:
  using Clock = Interpreter::Clock;
  using Index = Interpreter::Index;

  [[nodiscard]] Time deadline(const Instruction& what) const;
  // Of this rank's instructions that are under way.
  [[nodiscard]] bool is_late(const Interpreter& run, Index index) const;
  [[nodiscard]] std::vector<Index> under_way(const Interpreter& run) const;
  [[nodiscard]] std::optional<Failure> overdue_compute(const Interpreter& run) const;
  [[nodiscard]] bool has_overdue_message(const Interpreter& run) const;
  void ask();
  [[nodiscard]] std::optional<Failure> judge(const Interpreter& run);
  [[nodiscard]] std::optional<ChainEnd> first_hopeless(const Interpreter& run,
                                                       const Progress& progress) const;
  [[nodiscard]] Failure someone_is_gone(const Interpreter& run, int who) const;
  // 0: not begun, 1: begun, 2: ended.
  [[nodiscard]] int state(const Interpreter& run, Index index) const;
  [[nodiscard]] std::optional<Lack> lacks(const Interpreter& run, Index index) const;
  [[nodiscard]] std::uint32_t own_size() const {
    return static_cast<std::uint32_t>(own().instructions.size());
  }
  [[nodiscard]] const RankProgram& own() const {
    return program_.ranks[static_cast<std::size_t>(me_)];
  }
  [[nodiscard]] Index own_index(std::uint32_t instruction) const {
    return prerequisites_.index(static_cast<std::uint32_t>(me_), instruction);
  }

  const Program& program_;
  const Matching& matching_;
  const Prerequisites& prerequisites_;
  const MeshTransport& transport_;
  Peers& peers_;
  const int me_;
  const int size_;
  const Time patience_;
  const std::function<void()> ask_everyone_;
  bool asking_ = false;
  Clock::time_point asked_at_, ask_again_;
  Index suspected_ = 0;
  int suspected_in_ = -1;
};

}  // namespace counterflow::exec

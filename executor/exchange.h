#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/memory.h"
#include "scheduler/graph/matching.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// How messages pass between ranks of one process. Both ends post; whoever comes second copies the
// bytes from slot to slot, after comparing what the two ends say they carry and the versions of the
// slots. A buffered send leaves a copy and goes. Any thread may post; nobody ever blocks here.
class Exchange {
 public:
  // Which ends of the message have ended by this post; what is wrong, in words, and at which end:
  // a message that is not what its receiver expects is wrong there.
  struct Outcome {
    bool mine = false;
    bool other = false;
    std::string fault{};
    Matching::End at{};
  };

  // Everything given must outlive it.
  Exchange(const Program& program, const Matching& matching, Semantics semantics,
           std::vector<RankMemory>& memories);

  // A new step: nothing is posted.
  void clear();
  // One end of a message is there.
  [[nodiscard]] Outcome post(std::uint32_t rank, std::uint32_t transfer);

 private:
  enum : std::uint8_t { kSent = 1, kReceiving = 2 };
  struct Message {
    std::atomic<std::uint8_t> posted{0};
    std::vector<std::byte> copy{};  // of a buffered send
  };

  [[nodiscard]] Outcome post_send(Matching::End send, Matching::End receive);
  [[nodiscard]] Outcome post_receive(Matching::End receive, Matching::End send);
  void deliver(Matching::End send, Matching::End receive, Buffer from, Outcome& outcome);
  [[nodiscard]] std::string mismatch(Matching::End send, Matching::End receive) const;
  void use(Matching::End end, Outcome& outcome);
  [[nodiscard]] const Transfer& transfer(Matching::End end) const {
    return program_.ranks[end.rank].transfers[end.transfer];
  }
  [[nodiscard]] Buffer data(Matching::End end);
  [[nodiscard]] Message& message(Matching::End send) { return messages_[send.rank][send.transfer]; }

  const Program& program_;
  const Matching& matching_;
  bool buffered_;
  std::vector<RankMemory>& memories_;
  std::vector<std::unique_ptr<Message[]>> messages_;  // [rank][transfer], of sends
};

}  // namespace counterflow::exec

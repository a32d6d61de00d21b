#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/memory.h"
#include "scheduler/graph/matching.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// Who posts: any thread, or always the same one, which is cheaper.
enum class Posting : std::uint8_t { any_thread, one_thread };

// How messages pass between ranks of one process. Both ends post; whoever comes second copies the
// bytes from slot to slot, packed and unpacked as they travel, after comparing what the two ends
// say they carry and the versions of the slots. A buffered send leaves a copy, packed, and goes.
// Nobody ever blocks here.
class Exchange {
 public:
  // What is wrong, in words, and at which end: a message that is not what its receiver expects is
  // wrong there.
  struct Fault {
    std::string reason;
    Matching::End at;
  };
  // Which ends of the message have ended by this post.
  struct Outcome {
    bool mine = false;
    bool other = false;
    std::optional<Fault> fault{};
  };

  // Everything given must outlive it.
  Exchange(const Program& program, const Matching& matching, Semantics semantics,
           std::vector<RankMemory>& memories, Posting posting);

  // A new step: nothing is posted.
  void clear();
  // One end of a message is there.
  [[nodiscard]] Outcome post(std::uint32_t rank, std::uint32_t transfer);

 private:
  enum : std::uint8_t { kSent = 1, kReceiving = 2 };
  using Posted = std::atomic<std::uint8_t>;

  [[nodiscard]] Outcome post_send(Matching::End send, Matching::End receive);
  [[nodiscard]] Outcome post_receive(Matching::End receive, Matching::End send);
  // Notes that an end is there; was the other?
  [[nodiscard]] bool meets(Matching::End send, std::uint8_t mine, std::uint8_t other);
  void deliver(Matching::End send, Matching::End receive, Outcome& outcome);
  // How the two ends of a message that do not match differ, in words.
  [[nodiscard]] std::string mismatch(Matching::End send, Matching::End receive) const;
  // False if the slot does not hold what the transfer means; then the outcome says so.
  [[nodiscard]] bool use(Matching::End end, Outcome& outcome);
  [[nodiscard]] const Transfer& transfer(Matching::End end) const {
    return program_.ranks[end.rank].transfers[end.transfer];
  }
  [[nodiscard]] Buffer data(Matching::End end);

  const Program& program_;
  const Matching& matching_;
  bool buffered_;
  bool one_thread_;
  std::vector<RankMemory>& memories_;
  std::vector<std::unique_ptr<Posted[]>> posted_;             // [rank][transfer], of sends
  std::vector<std::vector<std::vector<std::byte>>> buffers_;  // the same, where sends are buffered
};

}  // namespace counterflow::exec

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow::exec {

enum class FrameKind : std::uint32_t {
  hello,      // what the sender is about to run
  ping,       // for the clocks
  pong,       //
  arrived,    // the sender is ready for the step
  go,         // the step begins at `value`, by the clock of rank 0
  ready,      // a receive is posted: the message may come
  data,       // the message
  share,      // what the receiver needs of the sender's part in a collective
  sum,        // of an all-reduce: the sender's part of the sum
  heartbeat,  // `value`: how many of the sender's instructions have ended, `sequence`: where it is
  question,   // how far are you?
  progress,   // the answer: for each instruction of the sender whether it has begun and ended
  stop,       // the run is over, and why
  timelines,  // what the sender measured
  done,       // the sender has all it needs
  bye,        // nothing follows
};

// What precedes every body on the wire. One layout for all machines of a run.
struct Frame {
  FrameKind kind = FrameKind::hello;
  std::int32_t step = 0;
  std::uint16_t communicator = 0;
  DataType type = DataType::bytes;
  CollectiveKind collective = CollectiveKind::barrier;
  std::uint32_t sequence = 0;  // the place of a message on its channel, or of a collective
  Payload payload{};
  std::uint32_t version = 0;   // of the slot it left from
  std::uint64_t declared = 0;  // bytes of the message or collective, as the program has them
  std::uint64_t size = 0;      // bytes of the body that follows
  std::uint64_t checksum = 0;  // of the body
  std::int64_t value = 0;
};
static_assert(sizeof(Frame) == 64);

// Ranks that can send each other frames: first in, first out between any two.
class Mesh {
 public:
  // What arrives. Called from one thread for each peer.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Where the body of a frame goes: `size` bytes, or nothing, then it is kept in a buffer of its
    // own. What is returned must stay valid until received() is called.
    virtual std::span<std::byte> room(int peer, const Frame& frame) = 0;
    virtual void received(int peer, const Frame& frame, std::span<const std::byte> body) = 0;
    // Nothing will come from this peer any more, though it has not said bye.
    virtual void lost(int peer, const std::string& why) = 0;
  };

  virtual ~Mesh() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  // Before the first frame is sent or taken.
  virtual void listen(Listener& listener) = 0;
  // Queues a frame. `sent` is called, by a thread of the mesh, when `body` is no longer needed; not
  // if the peer is lost. `frame.size` is that of the body.
  virtual void send(int peer, const Frame& frame, std::span<const std::byte> body,
                    std::function<void()> sent) = 0;
  // The same with a body that the mesh keeps.
  virtual void send(int peer, const Frame& frame, std::vector<std::byte> body) = 0;
  // Says bye to everyone, waits until everyone has said so, or is lost, or `patience` is over.
  virtual void close(std::chrono::nanoseconds patience) = 0;
};

// FNV-1a over words: fast enough for messages, and sure to see a changed bit.
[[nodiscard]] std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace counterflow::exec

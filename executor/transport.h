#pragma once

#include <cstdint>
#include <string>

#include "scheduler/graph/matching.h"

namespace counterflow::exec {

// How messages get from one rank to another: by copying in one process, over a network between
// several. An interpreter posts the ends of messages as its instructions begin and is told when
// they have ended.
class Transport {
 public:
  // Whoever posts. Called from any thread, also from within post().
  class Listener {
   public:
    virtual ~Listener() = default;
    // This end of a message has ended: a send's buffer may be written again, a receive's be read.
    virtual void transfer_ended(Matching::End end) = 0;
    // At this end a message is not what it should be: what is wrong, in words, and whose doing it
    // is.
    virtual void transfer_failed(Matching::End end, std::string reason, std::uint32_t culprit) = 0;
    // This rank's part of a collective has ended, or is not what it should be, and whose doing it
    // is.
    virtual void collective_ended(std::uint32_t rank, std::uint32_t instruction) = 0;
    virtual void collective_failed(std::uint32_t rank, std::uint32_t instruction,
                                   std::string reason, std::uint32_t culprit) = 0;
  };

  virtual ~Transport() = default;
  // A new step: nothing is posted.
  virtual void begin_step(int step, Listener& listener) = 0;
  // One end of a message is there, of a rank that runs here. Any thread may post; it does not wait.
  virtual void post(Matching::End end) = 0;
  // A rank that runs here comes to a collective. It does not wait either.
  virtual void arrive(std::uint32_t rank, std::uint32_t instruction) = 0;
};

}  // namespace counterflow::exec

#pragma once

#include <deque>
#include <string>

namespace counterflow {

// What must not outlive the process: files half written, folders made for them. If a signal
// (hang-up, interrupt, termination) ends the process, they are removed, the last added first, and
// the signal then does what it always does. One at a time.
class Leftovers {
 public:
  Leftovers();
  // Forgets them.
  ~Leftovers();
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // A file, there already or not, or a folder, which goes if it is empty.
  void add(std::string path);

  struct Entry {
    std::string path;
    const Entry* before = nullptr;
  };

 private:
  std::deque<Entry> entries_;
};

// Keeps these signals waiting: for steps that must not end half-way.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  bool were_held_[3];
};

}  // namespace counterflow

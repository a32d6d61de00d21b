#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace counterflow::exec {

// Processes that this one starts and waits for. They end with it, whatever ends it.
class Children {
 public:
  struct Outcome {
    std::vector<std::byte> bytes;  // what it sent back; empty: it ended before
    std::string how;               // "was ended by signal 9", "exited with status 1"
    bool ended_by_us = false;      // it did not end in time
  };

  // Starts `count` of them; each does `work` with its number and sends back what that returns.
  // Throws EnvironmentError; then none is left. No thread may be running.
  Children(int count, const std::function<std::vector<std::byte>(int)>& work);
  // Ends those that are left.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Waits for all. Once one has ended, the others have what `grace` says of how it did: those that
  // are left when the first such time is over are ended, also where they are stopped.
  using Grace = std::function<std::chrono::nanoseconds(const Outcome&)>;
  [[nodiscard]] std::vector<Outcome> wait(const Grace& grace);

 private:
  struct Child {
    pid_t pid = -1;
    int pipe = -1;
    bool open = true;
    Outcome outcome{};
  };
  void start(Child& child, int number, const std::function<std::vector<std::byte>(int)>& work);
  // False at the end of what it sends, when it has been waited for.
  bool read_some(Child& child);
  void end_all();

  std::vector<Child> children_;
};

}  // namespace counterflow::exec

#include "executor/gloo/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "scheduler/error.h"

namespace counterflow::exec {
namespace {

void write_all(int to, const std::vector<std::byte>& bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = ::write(to, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody reads any more
    at += static_cast<std::size_t>(n);
  }
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace

Children::Children(int count, const std::function<std::vector<std::byte>(int)>& work) {
  // What is buffered must not be written by every child again.
  std::fflush(nullptr);
  children_.resize(static_cast<std::size_t>(count));
  for (int n = 0; n < count; ++n) start(children_[static_cast<std::size_t>(n)], n, work);
}

void Children::start(Child& child, int number,
                     const std::function<std::vector<std::byte>(int)>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const std::string reason = std::strerror(errno);
    end_all();
    throw EnvironmentError("cannot start ranks: " + reason);
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const std::string reason = std::strerror(errno);
    ::close(ends[0]);
    ::close(ends[1]);
    end_all();
    throw EnvironmentError("cannot start ranks: " + reason);
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) std::_Exit(1);
    for (const Child& each : children_) {
      if (each.pipe >= 0) ::close(each.pipe);
    }
    ::close(ends[0]);
    write_all(ends[1], work(number));
    std::_Exit(0);
  }
  ::close(ends[1]);
  child.pid = pid;
  child.pipe = ends[0];
}

Children::~Children() {
  end_all();
}

void Children::end_all() {
  for (Child& child : children_) {
    if (child.pid > 0) {
      kill(child.pid, SIGKILL);
      while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      child.pid = -1;
    }
    if (child.pipe >= 0) ::close(child.pipe);
    child.pipe = -1;
  }
}

// At the end of its pipe the child has said all: then it is waited for.
bool Children::read_some(Child& child) {
  std::byte buffer[1U << 16U];
  const ssize_t n = ::read(child.pipe, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return true;
  if (n > 0) {
    child.outcome.bytes.insert(child.outcome.bytes.end(), buffer, buffer + n);
    return true;
  }
  child.open = false;
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  child.pid = -1;
  child.outcome.how = how_it_ended(status);
  // Half of an answer is none.
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) child.outcome.bytes.clear();
  return false;
}

std::vector<Children::Outcome> Children::wait(const Grace& grace) {
  using Clock = std::chrono::steady_clock;
  auto until = Clock::time_point::max();
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<Child*> asked;
    for (Child& child : children_) {
      if (!child.open) continue;
      polled.push_back({child.pipe, POLLIN, 0});
      asked.push_back(&child);
    }
    if (polled.empty()) break;
    if (Clock::now() > until) {
      for (Child* child : asked) {
        child->outcome.ended_by_us = true;
        kill(child->pid, SIGKILL);
      }
    }
    poll(polled.data(), polled.size(), 50);
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0 || read_some(*asked[i])) continue;
      until = std::min(until, Clock::now() + grace(asked[i]->outcome));
    }
  }
  std::vector<Outcome> outcomes;
  for (Child& child : children_) outcomes.push_back(std::move(child.outcome));
  return outcomes;
}

}  // namespace counterflow::exec

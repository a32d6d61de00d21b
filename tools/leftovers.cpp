#include "tools/leftovers.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iterator>
#include <utility>

namespace counterflow {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGTERM};

// The handler walks this list: an entry is complete before it is in it.
std::atomic<const Leftovers::Entry*> newest{nullptr};
static_assert(std::atomic<const Leftovers::Entry*>::is_always_lock_free);

// Only calls that a signal handler may make. The signal is held until the handler returns, and does
// then what it does by default.
void remove_leftovers(int signal) {
  for (const Leftovers::Entry* entry = newest.load(); entry != nullptr; entry = entry->before) {
    if (unlink(entry->path.c_str()) != 0) rmdir(entry->path.c_str());
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

// A signal that was ignored when we started (nohup) stays ignored.
void install_handlers() {
  for (const int signal : kSignals) {
    struct sigaction current {};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_DFL) continue;
    current.sa_handler = remove_leftovers;
    sigfillset(&current.sa_mask);
    sigaction(signal, &current, nullptr);
  }
}

}  // namespace

Leftovers::Leftovers() {
  install_handlers();
}

Leftovers::~Leftovers() {
  newest.store(nullptr);
}

void Leftovers::add(std::string path) {
  entries_.push_back({std::move(path), newest.load()});
  newest.store(&entries_.back());
}

HeldSignals::HeldSignals() {
  sigset_t held;
  sigset_t before;
  sigemptyset(&held);
  for (const int signal : kSignals) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    were_held_[i] = sigismember(&before, kSignals[i]) == 1;
  }
}

HeldSignals::~HeldSignals() {
  sigset_t free;
  sigemptyset(&free);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    if (!were_held_[i]) sigaddset(&free, kSignals[i]);
  }
  pthread_sigmask(SIG_UNBLOCK, &free, nullptr);
}

}  // namespace counterflow

#pragma once

#include <chrono>
#include <vector>

#include "executor/gloo/store_server.h"

namespace counterflow::exec {

// Where processes that this one starts find each other: each has a connection from before the fork.
class LocalStore {
 public:
  // Throws EnvironmentError.
  LocalStore(int ranks, std::chrono::milliseconds patience);
  // Waits until the children have closed their connections.
  ~LocalStore();
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;

  // In a child: its connection, its own from now on.
  [[nodiscard]] int connection_of(int rank);
  // Here, once all children are started: answers them. It has threads from now on.
  void serve();

 private:
  void close_all();

  StoreServer server_;
  std::vector<SocketPair> ends_;  // [rank]
};

}  // namespace counterflow::exec

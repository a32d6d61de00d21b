#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "executor/gloo/store_server.h"

// Where ranks that a launcher started find each other: rank 0 serves at a port that everybody
// knows. Used while they connect, not after.
namespace counterflow::exec {

class TcpStoreServer {
 public:
  // Listens. Throws EnvironmentError.
  TcpStoreServer(int port, std::chrono::milliseconds patience);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  // A connection to itself.
  [[nodiscard]] int connect();

 private:
  void accept_all();

  StoreServer server_;
  int listener_ = -1;
  std::atomic<bool> closing_{false};
  std::thread acceptor_;
};

// A connection to the server of another process, once that listens. Throws EnvironmentError after
// the patience: whether the host is not known, or does not answer.
[[nodiscard]] int connect_to_store(const std::string& host, int port,
                                   std::chrono::milliseconds patience);

}  // namespace counterflow::exec

#pragma once

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// The keys and values by which ranks find each other while they connect: one process keeps them,
// the others ask it, each over a socket of its own.
namespace counterflow::exec {

// Two ends of one connection within this machine.
struct SocketPair {
  int ours = -1;
  int theirs = -1;
};
// Throws EnvironmentError.
[[nodiscard]] SocketPair socket_pair();

class StoreServer {
 public:
  // How long a value is waited for, and at the end an asker that stays.
  explicit StoreServer(std::chrono::milliseconds patience) : patience_(patience) {}
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Answers who is at the other end, in a thread, until they close; takes the connection over.
  void serve(int connection);

  void set(const std::string& key, const std::vector<char>& data);
  // Waits for it, for `most` and no longer than the patience; empty: it has not come.
  [[nodiscard]] std::vector<char> get(const std::string& key, std::chrono::milliseconds most);

 private:
  void answer(int connection);

  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<char>> values_;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
};

// The store as gloo asks for it, over a connection to its server. Throws EnvironmentError, also
// where the server does not answer for five seconds more than it may take.
class StoreClient : public gloo::rendezvous::Store {
 public:
  // Takes the connection over. `patience`: how long get() and wait() without a time wait.
  StoreClient(int connection, std::chrono::milliseconds patience)
      : connection_(connection), patience_(patience) {}
  ~StoreClient() override;
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  [[nodiscard]] std::vector<char> ask(char what, const std::string& key,
                                      const std::vector<char>& data,
                                      std::chrono::milliseconds most);
  [[nodiscard]] std::vector<char> get(const std::string& key, std::chrono::milliseconds most);

  int connection_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
};

}  // namespace counterflow::exec

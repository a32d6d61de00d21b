#pragma once

#include <gloo/rendezvous/store.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace counterflow::exec {

// Where ranks on several machines find each other: rank 0 keeps keys and values for all, at a port
// that everybody knows. Used while they connect, not after.
class TcpStore final : public gloo::rendezvous::Store {
 public:
  // Rank 0 serves, the others connect. Throws EnvironmentError.
  TcpStore(const std::string& host, int port, bool serves, std::chrono::milliseconds patience);
  ~TcpStore() override;
  TcpStore(const TcpStore&) = delete;
  TcpStore& operator=(const TcpStore&) = delete;

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  void accept_all();
  void serve(int connection);
  [[nodiscard]] int connect_to(const std::string& host, int port) const;
  [[nodiscard]] std::vector<char> ask(char what, const std::string& key,
                                      const std::vector<char>& data);
  // Waits for it.
  [[nodiscard]] std::vector<char> kept(const std::string& key);

  std::chrono::milliseconds patience_;
  int listener_ = -1;
  int connection_ = -1;
  std::atomic<bool> closing_{false};
  std::mutex mutex_, ask_mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<char>> values_;
  std::vector<int> served_;
  std::thread acceptor_;
  std::vector<std::thread> servers_;
};

}  // namespace counterflow::exec

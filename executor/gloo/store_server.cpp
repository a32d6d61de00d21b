#include "executor/gloo/store_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "scheduler/error.h"

namespace counterflow::exec {
namespace {

constexpr std::uint32_t kMostBytes = 1U << 24U;

bool send_all(int to, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::send(to, at, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_all(int from, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::recv(from, at, size, 0);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

template <typename Bytes>
bool send_bytes(int to, const Bytes& bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  return send_all(to, &size, sizeof size) && send_all(to, bytes.data(), bytes.size());
}

template <typename Bytes>
bool receive_bytes(int from, Bytes& bytes) {
  std::uint32_t size = 0;
  if (!receive_all(from, &size, sizeof size) || size > kMostBytes) return false;
  bytes.resize(size);
  return receive_all(from, bytes.data(), size);
}

}  // namespace

SocketPair socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw EnvironmentError(fmt::format("cannot connect ranks: {}", std::strerror(errno)));
  }
  return {ends[0], ends[1]};
}

// Others may still be asking: they close first, but not for longer than the patience.
StoreServer::~StoreServer() {
  for (const int connection : connections_) give_up_after_patience(connection);
  for (std::thread& each : threads_) each.join();
  for (const int connection : connections_) ::close(connection);
}

void StoreServer::give_up_after_patience(int connection) const {
  const timeval most{std::chrono::duration_cast<std::chrono::seconds>(patience_).count() + 1, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
}

void StoreServer::serve(int connection) {
  const std::scoped_lock lock(mutex_);
  connections_.push_back(connection);
  give_up_after_patience(connection);
  threads_.emplace_back([this, connection] { answer(connection); });
}

void StoreServer::answer(int connection) {
  char what = 0;
  std::string key;
  std::vector<char> data;
  while (receive_all(connection, &what, 1) && receive_bytes(connection, key) &&
         receive_bytes(connection, data)) {
    if (what == 's') set(key, data);
    if (!send_bytes(connection, what == 's' ? std::vector<char>() : get(key))) break;
  }
  shutdown(connection, SHUT_RDWR);
}

void StoreServer::set(const std::string& key, const std::vector<char>& data) {
  {
    const std::scoped_lock lock(mutex_);
    values_[key] = data;
  }
  changed_.notify_all();
}

std::vector<char> StoreServer::get(const std::string& key) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience_, [&] { return values_.contains(key); });
  const auto found = values_.find(key);
  return found == values_.end() ? std::vector<char>() : found->second;
}

StoreClient::~StoreClient() {
  ::close(connection_);
}

std::vector<char> StoreClient::ask(char what, const std::string& key,
                                   const std::vector<char>& data) {
  const std::scoped_lock lock(mutex_);
  std::vector<char> answer;
  if (send_all(connection_, &what, 1) && send_bytes(connection_, key) &&
      send_bytes(connection_, data) && receive_bytes(connection_, answer)) {
    return answer;
  }
  throw EnvironmentError("who keeps their addresses has gone while ranks were connecting");
}

void StoreClient::set(const std::string& key, const std::vector<char>& data) {
  (void)ask('s', key, data);
}

std::vector<char> StoreClient::get(const std::string& key) {
  std::vector<char> value = ask('g', key, {});
  if (value.empty()) throw EnvironmentError("not all ranks have come");
  return value;
}

void StoreClient::wait(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) (void)get(key);
}

void StoreClient::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) {
  wait(keys);
}

}  // namespace counterflow::exec

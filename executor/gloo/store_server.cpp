#include "executor/gloo/store_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "scheduler/error.h"

namespace counterflow::exec {
namespace {

constexpr std::uint32_t kMostBytes = 1U << 24U;
constexpr std::chrono::seconds kAnswer(5);  // for an answer to come, on a loaded machine too

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

std::vector<char> to_bytes(std::chrono::milliseconds time) {
  const std::int64_t count = time.count();
  std::vector<char> bytes(sizeof count);
  std::memcpy(bytes.data(), &count, sizeof count);
  return bytes;
}

std::chrono::milliseconds time_from(const std::vector<char>& bytes) {
  std::int64_t count = 0;
  std::memcpy(&count, bytes.data(), std::min(bytes.size(), sizeof count));
  return std::chrono::milliseconds(count);
}

// What is received from there comes within that time, or not at all.
void give_up_after(int connection, std::chrono::milliseconds most) {
  const timeval time{std::chrono::duration_cast<std::chrono::seconds>(most).count() + 1, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
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
  for (const int connection : connections_) give_up_after(connection, patience_);
  for (std::thread& each : threads_) each.join();
  for (const int connection : connections_) ::close(connection);
}

void StoreServer::serve(int connection) {
  const std::scoped_lock lock(mutex_);
  connections_.push_back(connection);
  give_up_after(connection, patience_);
  threads_.emplace_back([this, connection] { answer(connection); });
}

void StoreServer::answer(int connection) {
  char what = 0;
  std::string key;
  std::vector<char> data;
  while (receive_all(connection, &what, 1) && receive_bytes(connection, key) &&
         receive_bytes(connection, data)) {
    if (what == 's') set(key, data);
    if (!send_bytes(connection, what == 's' ? std::vector<char>() : get(key, time_from(data)))) {
      break;
    }
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

std::vector<char> StoreServer::get(const std::string& key, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::min(most, patience_), [&] { return values_.contains(key); });
  const auto found = values_.find(key);
  return found == values_.end() ? std::vector<char>() : found->second;
}

StoreClient::~StoreClient() {
  ::close(connection_);
}

std::vector<char> StoreClient::ask(char what, const std::string& key, const std::vector<char>& data,
                                   std::chrono::milliseconds most) {
  const std::scoped_lock lock(mutex_);
  give_up_after(connection_, most + kAnswer);
  std::vector<char> answer;
  if (send_all(connection_, &what, 1) && send_bytes(connection_, key) &&
      send_bytes(connection_, data) && receive_bytes(connection_, answer)) {
    return answer;
  }
  throw EnvironmentError(
      "who keeps the ranks' addresses, rank 0 or the process that started them, has gone or does "
      "not answer; see what it said");
}

void StoreClient::set(const std::string& key, const std::vector<char>& data) {
  (void)ask('s', key, data, {});
}

std::vector<char> StoreClient::get(const std::string& key, std::chrono::milliseconds most) {
  std::vector<char> value = ask('g', key, to_bytes(most), most);
  if (value.empty()) throw EnvironmentError("not all ranks have come");
  return value;
}

std::vector<char> StoreClient::get(const std::string& key) {
  return get(key, patience_);
}

void StoreClient::wait(const std::vector<std::string>& keys) {
  wait(keys, patience_);
}

void StoreClient::wait(const std::vector<std::string>& keys,
                       const std::chrono::milliseconds& timeout) {
  for (const std::string& key : keys) (void)get(key, timeout);
}

}  // namespace counterflow::exec

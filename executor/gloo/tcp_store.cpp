#include "executor/gloo/tcp_store.h"

#include <fmt/format.h>
#include <netdb.h>
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

struct Addresses {
  Addresses(const std::string& host, int port, bool to_bind) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = to_bind ? AI_PASSIVE : 0;
    const std::string service = std::to_string(port);
    error = getaddrinfo(to_bind ? nullptr : host.c_str(), service.c_str(), &hints, &list);
  }
  ~Addresses() {
    if (list != nullptr) freeaddrinfo(list);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  addrinfo* list = nullptr;
  int error = 0;
};

int listen_at(int port) {
  const Addresses addresses({}, port, true);
  for (const addrinfo* each = addresses.list; each != nullptr; each = each->ai_next) {
    const int socket =
        ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    if (socket < 0) continue;
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(socket, each->ai_addr, each->ai_addrlen) == 0 && listen(socket, SOMAXCONN) == 0) {
      return socket;
    }
    ::close(socket);
  }
  return -1;
}

}  // namespace

TcpStore::TcpStore(const std::string& host, int port, bool serves,
                   std::chrono::milliseconds patience)
    : patience_(patience) {
  if (serves) {
    listener_ = listen_at(port);
    if (listener_ < 0) {
      throw EnvironmentError(
          fmt::format("rank 0 cannot listen at port {}: {}; choose another with "
                      "COUNTERFLOW_PORT, the same for all ranks",
                      port, std::strerror(errno)));
    }
    acceptor_ = std::thread([this] { accept_all(); });
    return;
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  while ((connection_ = connect_to(host, port)) < 0) {
    if (std::chrono::steady_clock::now() > until) {
      throw EnvironmentError(
          fmt::format("rank 0 does not answer at {}:{} (MASTER_ADDR, MASTER_PORT)", host, port));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

TcpStore::~TcpStore() {
  closing_ = true;
  changed_.notify_all();
  if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  // Others may still be asking: they close first, but not for longer than the patience.
  const timeval most{std::chrono::duration_cast<std::chrono::seconds>(patience_).count() + 1, 0};
  for (const int connection : served_) {
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  }
  for (std::thread& server : servers_) server.join();
  if (listener_ >= 0) ::close(listener_);
  if (connection_ >= 0) ::close(connection_);
}

int TcpStore::connect_to(const std::string& host, int port) const {
  const Addresses addresses(host, port, false);
  for (const addrinfo* each = addresses.list; each != nullptr; each = each->ai_next) {
    const int socket =
        ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    if (socket < 0) continue;
    if (connect(socket, each->ai_addr, each->ai_addrlen) == 0) return socket;
    ::close(socket);
  }
  return -1;
}

void TcpStore::accept_all() {
  while (!closing_) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      if (errno == EINTR) continue;
      return;
    }
    const timeval most{std::chrono::duration_cast<std::chrono::seconds>(patience_).count() + 1, 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    served_.push_back(connection);
    servers_.emplace_back([this, connection] { serve(connection); });
  }
}

void TcpStore::serve(int connection) {
  char what = 0;
  std::string key;
  std::vector<char> data;
  while (receive_all(connection, &what, 1) && receive_bytes(connection, key) &&
         receive_bytes(connection, data)) {
    if (what == 's') set(key, data);
    if (!send_bytes(connection, what == 's' ? std::vector<char>() : kept(key))) break;
  }
  ::close(connection);
}

std::vector<char> TcpStore::kept(const std::string& key) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience_, [&] { return values_.contains(key); });
  const auto found = values_.find(key);
  return found == values_.end() ? std::vector<char>() : found->second;
}

std::vector<char> TcpStore::ask(char what, const std::string& key, const std::vector<char>& data) {
  const std::scoped_lock lock(ask_mutex_);
  std::vector<char> answer;
  if (send_all(connection_, &what, 1) && send_bytes(connection_, key) &&
      send_bytes(connection_, data) && receive_bytes(connection_, answer)) {
    return answer;
  }
  throw EnvironmentError("rank 0 has gone while ranks were connecting");
}

void TcpStore::set(const std::string& key, const std::vector<char>& data) {
  if (connection_ >= 0) {
    (void)ask('s', key, data);
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    values_[key] = data;
  }
  changed_.notify_all();
}

std::vector<char> TcpStore::get(const std::string& key) {
  std::vector<char> value = connection_ >= 0 ? ask('g', key, {}) : kept(key);
  if (value.empty()) throw EnvironmentError("not all ranks have come");
  return value;
}

void TcpStore::wait(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) (void)get(key);
}

void TcpStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) {
  wait(keys);
}

}  // namespace counterflow::exec

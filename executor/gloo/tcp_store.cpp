#include "executor/gloo/tcp_store.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "scheduler/error.h"

namespace counterflow::exec {
namespace {

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

// What keeps a connection from being made.
struct Obstacle {
  bool is_host = false;  // its name is not known
  std::string reason;
};

// A connection, or -1 and what is in the way. Takes up to `most` for each address of the host.
int connect_to(const std::string& host, int port, std::chrono::milliseconds most,
               Obstacle& obstacle) {
  const Addresses addresses(host, port, false);
  if (addresses.error != 0) obstacle = {true, gai_strerror(addresses.error)};
  const timeval time{most.count() / 1000, most.count() % 1000 * 1000};
  for (const addrinfo* each = addresses.list; each != nullptr; each = each->ai_next) {
    const int socket =
        ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    if (socket < 0) continue;
    // It counts for connect() too.
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    if (connect(socket, each->ai_addr, each->ai_addrlen) == 0) {
      constexpr timeval kNoLimit{};
      setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kNoLimit, sizeof kNoLimit);
      return socket;
    }
    obstacle = {false, errno == EINPROGRESS ? "no answer" : std::strerror(errno)};
    ::close(socket);
  }
  return -1;
}

}  // namespace

TcpStoreServer::TcpStoreServer(int port, std::chrono::milliseconds patience) : server_(patience) {
  listener_ = listen_at(port);
  if (listener_ < 0) {
    throw EnvironmentError(
        fmt::format("rank 0 cannot listen at port {}: {}; choose another with "
                    "COUNTERFLOW_PORT, the same for all ranks",
                    port, std::strerror(errno)));
  }
  acceptor_ = std::thread([this] { accept_all(); });
}

TcpStoreServer::~TcpStoreServer() {
  closing_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
}

int TcpStoreServer::connect() {
  const SocketPair ends = socket_pair();
  server_.serve(ends.ours);
  return ends.theirs;
}

void TcpStoreServer::accept_all() {
  while (!closing_) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) {
      server_.serve(connection);
    } else if (errno != EINTR) {
      return;
    }
  }
}

int connect_to_store(const std::string& host, int port, std::chrono::milliseconds patience) {
  using std::chrono::milliseconds;
  constexpr milliseconds kPause(50);
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
    Obstacle obstacle;
    const int connection = connect_to(host, port, std::max(left, kPause), obstacle);
    if (connection >= 0) return connection;
    if (std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    if (obstacle.is_host) {
      throw EnvironmentError(
          fmt::format("MASTER_ADDR={}: there is no such host: {}; set it to the name or address of "
                      "rank 0's machine",
                      host, obstacle.reason));
    }
    throw EnvironmentError(
        fmt::format("rank 0 does not answer at {}:{} within {} ms: {}; start it there "
                    "(MASTER_ADDR, MASTER_PORT or COUNTERFLOW_PORT), or wait longer with "
                    "--patience",
                    host, port, patience.count(), obstacle.reason));
  }
}

}  // namespace counterflow::exec

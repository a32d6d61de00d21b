#include "executor/gloo/local_store.h"

#include <unistd.h>

#include <utility>

namespace counterflow::exec {
namespace {

void close_one(int& end) {
  if (end >= 0) ::close(end);
  end = -1;
}

}  // namespace

LocalStore::LocalStore(int ranks, std::chrono::milliseconds patience) : server_(patience) {
  try {
    for (int rank = 0; rank < ranks; ++rank) ends_.push_back(socket_pair());
  } catch (...) {
    close_all();
    throw;
  }
}

LocalStore::~LocalStore() {
  close_all();
}

int LocalStore::connection_of(int rank) {
  const int mine = std::exchange(ends_[static_cast<std::size_t>(rank)].theirs, -1);
  close_all();
  return mine;
}

void LocalStore::serve() {
  for (SocketPair& each : ends_) {
    close_one(each.theirs);
    server_.serve(std::exchange(each.ours, -1));
  }
}

void LocalStore::close_all() {
  for (SocketPair& each : ends_) {
    close_one(each.ours);
    close_one(each.theirs);
  }
}

}  // namespace counterflow::exec

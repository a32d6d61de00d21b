#include "executor/gloo/gloo_mesh.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/out_of_memory.h"
#include "scheduler/error.h"

namespace counterflow::exec {
namespace {

using UnboundBuffer = gloo::transport::UnboundBuffer;

constexpr std::uint64_t kFrames = 1;
constexpr std::uint64_t kBodies = 2;
// Whoever waits is woken by what arrives, by the connection's end, or by close().
constexpr std::chrono::milliseconds kForEver = std::chrono::hours(24 * 365);

// gloo puts where in its sources it threw before what it says.
std::string reason_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return out_of_memory("what it sends or is sent");
  }
  const std::string text = error.what();
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

// Keys are waited for as long as we say.
class PatientStore final : public gloo::rendezvous::Store {
 public:
  PatientStore(Store& store, std::chrono::milliseconds patience)
      : store_(store), patience_(patience) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(key, data);
  }
  std::vector<char> get(const std::string& key) override { return store_.get(key); }
  void wait(const std::vector<std::string>& keys) override { store_.wait(keys, patience_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    store_.wait(keys, patience_);
  }

 private:
  Store& store_;
  std::chrono::milliseconds patience_;
};

// gloo waits five times as long as it is told for each connection.
std::chrono::milliseconds told_to_gloo(std::chrono::milliseconds patience) {
  return std::max<std::chrono::milliseconds>(patience / 5, std::chrono::milliseconds(1));
}

}  // namespace

struct GlooMesh::Connection {
  std::shared_ptr<gloo::transport::Device> device;
  std::unique_ptr<gloo::rendezvous::Context> context;
  std::vector<std::unique_ptr<Peer>> peers;  // [rank], none for its own
};

class GlooMesh::Peer {
 public:
  Peer(gloo::Context& context, int rank)
      : context_(context),
        rank_(rank),
        out_(context.createUnboundBuffer(&out_frame_, sizeof out_frame_)),
        in_(context.createUnboundBuffer(&in_frame_, sizeof in_frame_)) {}

  ~Peer() { stop(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void listen(Listener& listener) {
    listener_ = &listener;
    receiver_ = std::thread([this] { receive(); });
    sender_ = std::thread([this] { send_all(); });
  }

  void push(const Frame& frame, std::span<const std::byte> body, std::vector<std::byte> kept,
            std::function<void()> sent) {
    {
      const std::scoped_lock lock(mutex_);
      queue_.push_back({frame, body, std::move(kept), std::move(sent)});
    }
    changed_.notify_all();
  }

  // Whether both directions have come to their end by then.
  void wait_until(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return received_all_ && sent_all_; });
  }

  void stop() {
    stopped_ = true;
    out_->abortWaitSend();
    in_->abortWaitRecv();
    {
      const std::scoped_lock lock(mutex_);
      if (out_body_) out_body_->abortWaitSend();
      if (in_body_) in_body_->abortWaitRecv();
    }
    changed_.notify_all();
    if (receiver_.joinable()) receiver_.join();
    if (sender_.joinable()) sender_.join();
  }

 private:
  struct Outgoing {
    Frame frame;
    std::span<const std::byte> body;
    std::vector<std::byte> kept;
    std::function<void()> sent;
  };

  void lose(const std::exception& error) {
    if (!said_bye_ && !stopped_) listener_->lost(rank_, reason_of(error));
  }

  void receive() {
    try {
      while (receive_one()) {
      }
    } catch (const std::exception& error) {
      lose(error);
    }
    finish(received_all_);
  }

  bool receive_one() {
    in_->recv(rank_, kFrames);
    if (!in_->waitRecv(nullptr, kForEver)) return false;
    const Frame frame = in_frame_;
    if (frame.kind == FrameKind::bye) {
      said_bye_ = true;
      return false;
    }
    std::vector<std::byte> kept;
    std::span<std::byte> room;
    if (frame.size > 0) {
      room = listener_->room(rank_, frame);
      if (room.empty()) {
        kept.resize(frame.size);
        room = kept;
      }
      // Its owner may be aborted, so it must be seen from outside.
      UnboundBuffer* body = attach(in_body_, room.data(), frame.size);
      body->recv(rank_, kBodies);
      const bool here = body->waitRecv(nullptr, kForEver);
      detach(in_body_);
      if (!here) return false;
    }
    listener_->received(rank_, frame, room);
    return true;
  }

  void send_all() {
    try {
      while (send_one()) {
      }
    } catch (const std::exception& error) {
      lose(error);
    }
    finish(sent_all_);
  }

  bool send_one() {
    Outgoing next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
      if (stopped_) return false;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    const std::span<const std::byte> bytes = next.kept.empty() ? next.body : next.kept;
    out_frame_ = next.frame;
    out_frame_.size = bytes.size();
    out_->send(rank_, kFrames);
    if (!out_->waitSend(nullptr, kForEver)) return false;
    if (!bytes.empty()) {
      // gloo only reads from a buffer that it sends.
      UnboundBuffer* body = attach(out_body_, const_cast<std::byte*>(bytes.data()), bytes.size());
      body->send(rank_, kBodies);
      const bool gone = body->waitSend(nullptr, kForEver);
      detach(out_body_);
      if (!gone) return false;
    }
    if (next.sent) next.sent();
    return next.frame.kind != FrameKind::bye;
  }

  UnboundBuffer* attach(std::unique_ptr<UnboundBuffer>& place, std::byte* data, std::size_t size) {
    auto buffer = context_.createUnboundBuffer(data, size);
    const std::scoped_lock lock(mutex_);
    place = std::move(buffer);
    if (stopped_) {
      place->abortWaitRecv();
      place->abortWaitSend();
    }
    return place.get();
  }

  void detach(std::unique_ptr<UnboundBuffer>& place) {
    const std::scoped_lock lock(mutex_);
    place.reset();
  }

  void finish(bool& what) {
    {
      const std::scoped_lock lock(mutex_);
      what = true;
    }
    changed_.notify_all();
  }

  gloo::Context& context_;
  const int rank_;
  Frame out_frame_, in_frame_;
  std::unique_ptr<UnboundBuffer> out_, in_;
  std::unique_ptr<UnboundBuffer> out_body_, in_body_;  // under mutex_
  Listener* listener_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Outgoing> queue_;
  bool received_all_ = false;
  bool sent_all_ = false;
  std::atomic<bool> said_bye_{false};
  std::atomic<bool> stopped_{false};
  std::thread receiver_, sender_;
};

GlooMesh::GlooMesh(int rank, int size, gloo::rendezvous::Store& store, const char* address,
                   std::chrono::milliseconds patience)
    : connection_(std::make_unique<Connection>()) {
  try {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = address;
    connection_->device = gloo::transport::tcp::CreateDevice(attributes);
    connection_->context = std::make_unique<gloo::rendezvous::Context>(rank, size);
    connection_->context->setTimeout(told_to_gloo(patience));
    PatientStore addresses(store, patience);
    connection_->context->connectFullMesh(addresses, connection_->device);
  } catch (const std::exception& error) {
    throw EnvironmentError("rank " + std::to_string(rank) + " cannot connect to the " +
                           std::to_string(size - 1) + " others over gloo: " + reason_of(error));
  }
  for (int peer = 0; peer < size; ++peer) {
    connection_->peers.push_back(
        peer == rank ? nullptr : std::make_unique<Peer>(*connection_->context, peer));
  }
}

GlooMesh::~GlooMesh() {
  connection_->peers.clear();
}

int GlooMesh::rank() const {
  return connection_->context->rank;
}

int GlooMesh::size() const {
  return connection_->context->size;
}

void GlooMesh::listen(Listener& listener) {
  for (const auto& peer : connection_->peers) {
    if (peer) peer->listen(listener);
  }
}

void GlooMesh::send(int peer, const Frame& frame, std::span<const std::byte> body,
                    std::function<void()> sent) {
  connection_->peers[static_cast<std::size_t>(peer)]->push(frame, body, {}, std::move(sent));
}

void GlooMesh::send(int peer, const Frame& frame, std::vector<std::byte> body) {
  connection_->peers[static_cast<std::size_t>(peer)]->push(frame, {}, std::move(body), {});
}

void GlooMesh::close(std::chrono::nanoseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (const auto& peer : connection_->peers) {
    if (peer) peer->push({.kind = FrameKind::bye}, {}, {}, {});
  }
  for (const auto& peer : connection_->peers) {
    if (peer) peer->wait_until(until);
  }
  for (const auto& peer : connection_->peers) {
    if (peer) peer->stop();
  }
}

}  // namespace counterflow::exec

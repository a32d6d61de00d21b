#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/processes/mesh.h"

namespace counterflow::testing {

// The meshes of ranks that are threads of this process: for tests of what goes over a mesh, without
// a network. A rank can be taken off it as if its process had ended.
class LocalMeshes {
 public:
  explicit LocalMeshes(int size) {
    for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<One>(*this, rank));
  }
  ~LocalMeshes() {
    for (auto& rank : ranks_) rank->end();
  }
  LocalMeshes(const LocalMeshes&) = delete;
  LocalMeshes& operator=(const LocalMeshes&) = delete;

  [[nodiscard]] exec::Mesh& of(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  // Nothing comes from it any more, and the others are told so.
  void take_off(int rank) {
    ranks_[static_cast<std::size_t>(rank)]->off_ = true;
    for (auto& other : ranks_) {
      if (other->rank() != rank) other->push({rank, {}, {}, true});
    }
  }

 private:
  struct Arrival {
    int from = 0;
    exec::Frame frame{};
    std::vector<std::byte> body{};
    bool is_end = false;
  };

  class One final : public exec::Mesh {
   public:
    One(LocalMeshes& all, int rank) : all_(all), rank_(rank) {}
    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return static_cast<int>(all_.ranks_.size()); }

    void listen(Listener& listener) override {
      listener_ = &listener;
      thread_ = std::thread([this] { deliver_all(); });
    }
    void send(int peer, const exec::Frame& frame, std::span<const std::byte> body,
              std::function<void()> sent) override {
      if (off_) return;
      exec::Frame complete = frame;
      complete.size = body.size();
      all_.ranks_[static_cast<std::size_t>(peer)]->push(
          {rank_, complete, {body.begin(), body.end()}, false});
      if (sent) sent();
    }
    void send(int peer, const exec::Frame& frame, std::vector<std::byte> body) override {
      send(peer, frame, std::span<const std::byte>(body), {});
    }
    // Whoever is left may still send; what comes is dropped.
    void close(std::chrono::nanoseconds) override {
      const std::scoped_lock lock(delivering_);
      closed_ = true;
    }

    void push(Arrival arrival) {
      {
        const std::scoped_lock lock(mutex_);
        queue_.push_back(std::move(arrival));
      }
      changed_.notify_one();
    }
    void end() {
      {
        const std::scoped_lock lock(mutex_);
        ended_ = true;
      }
      changed_.notify_one();
      if (thread_.joinable()) thread_.join();
    }
    std::atomic<bool> off_{false};

   private:
    void deliver_all() {
      for (;;) {
        Arrival next;
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return ended_ || !queue_.empty(); });
          if (ended_) return;
          next = std::move(queue_.front());
          queue_.pop_front();
        }
        deliver(next);
      }
    }
    void deliver(Arrival& next) {
      const std::scoped_lock lock(delivering_);
      if (off_ || closed_) return;
      if (next.is_end) return listener_->lost(next.from, "connection closed");
      std::span<const std::byte> body = next.body;
      if (const auto room = listener_->room(next.from, next.frame); !room.empty()) {
        std::copy(body.begin(), body.end(), room.begin());
        body = room;
      }
      listener_->received(next.from, next.frame, body);
    }

    LocalMeshes& all_;
    const int rank_;
    Listener* listener_ = nullptr;
    bool closed_ = false;
    std::mutex delivering_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Arrival> queue_;
    bool ended_ = false;
    std::thread thread_;
  };

  std::vector<std::unique_ptr<One>> ranks_;
};

}  // namespace counterflow::testing

// body_budget.h  One bound for the bodies of all requests of the process, from their first byte until their text is no
// longer needed: each may have 8 MiB, and there may be thousands of connections.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace chimere::server {

// Taken from by the I/O thread, given back to by any.
class BodyBudget {
 public:
  explicit BodyBudget(size_t limit) : limit_(limit) {}

  size_t limit() const { return limit_; }
  bool has_room(size_t bytes) const {
    const size_t held = held_.load();
    return held <= limit_ && bytes <= limit_ - held;
  }
  void take(size_t bytes) { held_ += bytes; }
  void give(size_t bytes) {
    held_ -= bytes;
    given_ += bytes;
  }
  // All that was ever given back.
  size_t given() const { return given_.load(); }

 private:
  const size_t limit_;
  std::atomic<size_t> held_{0};
  std::atomic<size_t> given_{0};
};

// What one body takes of it, as long as this exists.
class BodyLease {
 public:
  explicit BodyLease(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
  ~BodyLease() { budget_->give(bytes_); }
  BodyLease(const BodyLease&) = delete;
  BodyLease& operator=(const BodyLease&) = delete;

  size_t bytes() const { return bytes_; }
  void grow(size_t bytes) {
    budget_->take(bytes);
    bytes_ += bytes;
  }

 private:
  const std::shared_ptr<BodyBudget> budget_;
  size_t bytes_ = 0;
};

}  // namespace chimere::server

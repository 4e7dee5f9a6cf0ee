// channel.h  Values on their way from one thread to another.
//
//   writers, any thread   put(), ring(), is_cancelled()
//   the reader            take(), wait(), wait_for(), cancel(), close()
//
// Both ends usually hold it by a shared_ptr, and either may be gone first. It is unbounded by itself: what is put is
// bounded by what was asked for, and a slow reader never stalls a writer. Threads that share work may all be readers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace chimere {

template <class T>
class Channel {
 public:
  // `notify` is called on the writer's thread, without locks held, whenever there may be something for the reader.
  explicit Channel(std::function<void()> notify = {}) : notify_(std::move(notify)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // False when the reader cancelled before: it may be gone, so what goes on has to be ended by the writer. Behind
  // close() the value is dropped: it might hold this channel itself, and both would stay for ever.
  bool put(T value) {
    bool is_wanted = false;
    {
      std::lock_guard lock(mutex_);
      if (!is_closed_) values_.push_back(std::move(value));
      is_wanted = !is_cancelled_;
      is_rung_ = true;
    }
    ready_.notify_one();
    if (notify_) notify_();
    return is_wanted;
  }
  // There is something for the reader elsewhere.
  void ring() {
    {
      std::lock_guard lock(mutex_);
      is_rung_ = true;
    }
    ready_.notify_one();
    if (notify_) notify_();
  }
  bool is_cancelled() const {
    std::lock_guard lock(mutex_);
    return is_cancelled_;
  }

  // The oldest value; nullopt when there is none now.
  std::optional<T> take() {
    std::lock_guard lock(mutex_);
    return pop();
  }
  // Blocks until there is a value; nullopt behind close().
  std::optional<T> next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return is_closed_ || !values_.empty(); });
    return pop();
  }
  // The same where nobody closes.
  T wait() { return std::move(*next()); }
  // Until somebody puts or rings, or did so since this was last called.
  void wait_for(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, longest, [&] { return is_rung_; });
    is_rung_ = false;
  }
  // The reader wants no more than an end.
  void cancel() {
    std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }
  // cancel(), and nobody reads here any more. Gives what was put and not taken.
  std::deque<T> close() {
    std::deque<T> unread;
    {
      std::lock_guard lock(mutex_);
      is_cancelled_ = is_closed_ = true;
      unread.swap(values_);
    }
    ready_.notify_all();
    return unread;
  }

 private:
  std::optional<T> pop() {
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    return value;
  }

  const std::function<void()> notify_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable ready_;
  std::deque<T> values_;
  bool is_rung_ = false;
  bool is_cancelled_ = false;
  bool is_closed_ = false;
};

}  // namespace chimere

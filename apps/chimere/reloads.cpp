#include "reloads.h"

#include <utility>

namespace chimere::apps {

void Reloads::start(std::function<void()> work) {
  thread_ = std::jthread([this, work = std::move(work)](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (asked_.wait(lock, stop, [this] { return is_asked_; })) {
      is_asked_ = false;
      lock.unlock();
      work();
      lock.lock();
      if (stop.stop_requested()) return;
    }
  });
}

void Reloads::ask() {
  const std::lock_guard lock(mutex_);
  is_asked_ = true;
  asked_.notify_one();
}

void Reloads::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace chimere::apps

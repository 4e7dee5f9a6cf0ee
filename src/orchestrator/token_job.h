// token_job.h  Token ids of a prompt that is counted and not run, made on the service's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"

namespace chimere::orchestrator {

class TokenJob {
 public:
  // Shared with the thread that does the work; either end may be gone first.
  class Box {
   public:
    explicit Box(std::function<void()> notify) : notify_(std::move(notify)) {}
    void put(Result<std::vector<int32_t>> ids) {
      {
        std::lock_guard lock(mutex_);
        ids_.emplace(std::move(ids));
      }
      if (notify_) notify_();
    }
    std::optional<Result<std::vector<int32_t>>> take() {
      std::lock_guard lock(mutex_);
      return std::exchange(ids_, std::nullopt);
    }

   private:
    const std::function<void()> notify_;
    std::mutex mutex_;
    std::optional<Result<std::vector<int32_t>>> ids_;
  };

  explicit TokenJob(std::shared_ptr<Box> box) : box_(std::move(box)) {}
  // The ids, once; nullopt before.
  std::optional<Result<std::vector<int32_t>>> poll() { return box_->take(); }

 private:
  std::shared_ptr<Box> box_;
};

}  // namespace chimere::orchestrator

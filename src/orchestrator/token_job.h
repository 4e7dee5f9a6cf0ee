// token_job.h  Work of the service's thread that is no answer of the model: ids of a text, lessons of a table.
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

template <class T>
class ServiceJob {
 public:
  // Shared with the thread that does the work; either end may be gone first.
  class Box {
   public:
    explicit Box(std::function<void()> notify) : notify_(std::move(notify)) {}
    void put(Result<T> result) {
      {
        std::lock_guard lock(mutex_);
        result_.emplace(std::move(result));
      }
      if (notify_) notify_();
    }
    std::optional<Result<T>> take() {
      std::lock_guard lock(mutex_);
      return std::exchange(result_, std::nullopt);
    }

   private:
    const std::function<void()> notify_;
    std::mutex mutex_;
    std::optional<Result<T>> result_;
  };

  explicit ServiceJob(std::shared_ptr<Box> box) : box_(std::move(box)) {}
  // The result, once; nullopt before.
  std::optional<Result<T>> poll() { return box_->take(); }

 private:
  std::shared_ptr<Box> box_;
};

using TokenJob = ServiceJob<std::vector<int32_t>>;

}  // namespace chimere::orchestrator

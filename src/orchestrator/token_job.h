// token_job.h  Work of the service's thread that is no answer of the model: ids of a text, lessons of a table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/channel.h"
#include "base/result.h"

namespace chimere::orchestrator {

// The reader of one result. The thread that does the work holds the channel too.
template <class T>
class ServiceJob {
 public:
  explicit ServiceJob(std::shared_ptr<Channel<Result<T>>> result) : result_(std::move(result)) {}
  // The result, once; nullopt before.
  std::optional<Result<T>> poll() { return result_->take(); }

 private:
  std::shared_ptr<Channel<Result<T>>> result_;
};

using TokenJob = ServiceJob<std::vector<int32_t>>;

}  // namespace chimere::orchestrator

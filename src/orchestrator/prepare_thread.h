// prepare_thread.h  One thread that turns requests into prompts: owners take turns, each one's jobs run in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/result.h"
#include "orchestrator/token_job.h"

namespace chimere::orchestrator {

// The one place where what libraries throw while a request is prepared becomes its error.
template <class T>
Result<T> guarded(const std::function<Result<T>()>& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    return Error{Code::internal, std::string("preparing the prompt: ") + e.what()};
  }
}

class PrepareThread {
 public:
  // Told whether to do the work (true) or only to say that it will not be done.
  using Job = std::function<void(bool)>;

  explicit PrepareThread(size_t max_waiting);
  // Waiting jobs are told so.
  ~PrepareThread();

  // False when too many wait; the job was dropped. An owner that has less than its share gets in all the same, as in
  // the engine's queue (engine/queue_places.h).
  bool post(Job job, uint64_t owner = 0);
  // Why post() refused.
  Error full() const {
    return {Code::exhausted, "too many requests wait to be prepared: " + std::to_string(max_waiting_)};
  }

  // post() for work that has a result and is refused through it. `notify` is called from another thread when the result
  // is there.
  template <class T>
  std::unique_ptr<ServiceJob<T>> run(std::function<Result<T>()> work, std::function<void()> notify,
                                     uint64_t owner = 0) {
    auto result = std::make_shared<Channel<Result<T>>>(std::move(notify));
    auto job = [result, work = std::move(work)](bool go_on) {
      result->put(go_on ? guarded(work) : Result<T>(Error{Code::cancelled, "the service is stopping"}));
    };
    if (!post(std::move(job), owner)) result->put(full());
    return std::make_unique<ServiceJob<T>>(std::move(result));
  }

 private:
  void thread_main();
  Job take();

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<uint64_t, std::deque<Job>> jobs_;  // by owner; none is empty
  size_t n_jobs_ = 0;
  uint64_t last_owner_ = 0;  // whose job was taken last
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace chimere::orchestrator

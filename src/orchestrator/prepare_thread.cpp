// prepare_thread.cpp  Queues of jobs and their thread.
#include "orchestrator/prepare_thread.h"

#include <utility>

namespace chimere::orchestrator {

PrepareThread::PrepareThread(size_t max_waiting) : max_waiting_(max_waiting), thread_([this] { thread_main(); }) {}

PrepareThread::~PrepareThread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  while (n_jobs_ > 0) take()(false);
}

bool PrepareThread::post(Job job, uint64_t owner) {
  {
    std::lock_guard lock(mutex_);
    const auto entry = jobs_.find(owner);
    const size_t own = entry == jobs_.end() ? 0 : entry->second.size();
    if (own > 0 && n_jobs_ >= max_waiting_ && own >= max_waiting_ / jobs_.size()) return false;
    jobs_[owner].push_back(std::move(job));
    ++n_jobs_;
  }
  wake_.notify_one();
  return true;
}

// The oldest job of the owner behind the last one. REQUIRES: there is a job.
PrepareThread::Job PrepareThread::take() {
  auto next = jobs_.upper_bound(last_owner_);
  if (next == jobs_.end()) next = jobs_.begin();
  last_owner_ = next->first;
  Job job = std::move(next->second.front());
  next->second.pop_front();
  if (next->second.empty()) jobs_.erase(next);
  --n_jobs_;
  return job;
}

void PrepareThread::thread_main() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || n_jobs_ > 0; });
      if (stopping_) return;
      job = take();
    }
    job(true);
  }
}

}  // namespace chimere::orchestrator

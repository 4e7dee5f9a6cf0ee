// prepare_thread.cpp  A queue of jobs and its thread.
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
  for (Job& job : jobs_) job(false);
}

bool PrepareThread::post(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (jobs_.size() >= max_waiting_) return false;
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

void PrepareThread::thread_main() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job(true);
  }
}

}  // namespace chimere::orchestrator

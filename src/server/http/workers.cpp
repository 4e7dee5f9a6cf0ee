// workers.cpp  A queue of jobs and its threads.
#include "server/http/workers.h"

namespace chimere::server {

Workers::Workers(int n_threads) {
  for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this] { thread_main(); });
}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::post(Job job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Workers::thread_main() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

ApiError failed_work(const Error& error) {
  if (error.code == Code::exhausted) return {503, error.message, "server_error", "", "out_of_memory"};
  return to_api_error(error);
}

}  // namespace chimere::server

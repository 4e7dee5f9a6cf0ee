// job_threads.h  Threads that do jobs in the order they come.
#pragma once

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/channel.h"

namespace chimere {

class JobThreads {
 public:
  using Job = std::function<void()>;  // does not throw

  explicit JobThreads(int n_threads) {
    for (int i = 0; i < n_threads; ++i) {
      threads_.emplace_back([this] {
        while (std::optional<Job> job = jobs_.next()) (*job)();
      });
    }
  }
  // Jobs that have not begun are dropped.
  ~JobThreads() {
    jobs_.close();
    for (std::thread& thread : threads_) thread.join();
  }
  JobThreads(const JobThreads&) = delete;
  JobThreads& operator=(const JobThreads&) = delete;

  // Any thread.
  void post(Job job) { jobs_.put(std::move(job)); }

 private:
  Channel<Job> jobs_;
  std::vector<std::thread> threads_;
};

}  // namespace chimere

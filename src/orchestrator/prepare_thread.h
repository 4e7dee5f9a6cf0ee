// prepare_thread.h  One thread that turns requests into prompts, in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace chimere::orchestrator {

class PrepareThread {
 public:
  // Told whether to do the work (true) or only to say that it will not be done.
  using Job = std::function<void(bool)>;

  explicit PrepareThread(size_t max_waiting);
  // Waiting jobs are told so.
  ~PrepareThread();

  // False when too many wait; the job was dropped.
  bool post(Job job);

 private:
  void thread_main();

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace chimere::orchestrator

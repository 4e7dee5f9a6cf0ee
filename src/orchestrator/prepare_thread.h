// prepare_thread.h  One thread that turns requests into prompts: owners take turns, each one's jobs run in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
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

  // False when too many wait; the job was dropped. An owner that has less than its share gets in all the same, as in
  // the engine's queue (engine/queue_places.h).
  bool post(Job job, uint64_t owner = 0);

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

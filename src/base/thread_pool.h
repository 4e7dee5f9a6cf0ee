// thread_pool.h  A team of threads for one owner: the calling thread is worker 0.
//
// A forward pass is one parallel region: every worker walks the same list of phases, and a phase ends at a barrier.
// Waking a sleeping thread costs tens of microseconds, a spinning barrier well under one; so workers spin inside a
// region and briefly after it, then sleep, and an idle engine burns no core.
//
//   pool.run([&](Team& team) {
//     team.parallel_for(n, grain, [&](int64_t begin, int64_t end) {...});   // dynamic shares, barrier at the end
//     team.each([&](int rank, int size) {...});                             // every worker once, barrier at the end
//   });
//
// All workers must make the same calls in the same order. Shares are handed out dynamically: what is computed must not
// depend on who computes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace chimere {

class ThreadPool;

class Team {
 public:
  int rank() const { return rank_; }
  int size() const;

  // Waits until every worker has come here; what was written before is visible after.
  void sync();

  template <class F>
  void parallel_for(int64_t n, int64_t grain, F&& body) {
    split(n, grain, body);
    sync();
  }

  // The same without the barrier, for phases whose results the next phase does not read from other workers.
  template <class F>
  void split(int64_t n, int64_t grain, F&& body) {
    std::atomic<int64_t>& next = begin_phase();
    if (size() == 1) {
      if (n > 0) body(int64_t{0}, n);
      return;
    }
    while (true) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= n) break;
      body(begin, begin + grain < n ? begin + grain : n);
    }
  }

  template <class F>
  void each(F&& body) {
    body(rank_, size());
    sync();
  }

 private:
  friend class ThreadPool;
  Team(ThreadPool& pool, int rank) : pool_(pool), rank_(rank) {}
  std::atomic<int64_t>& begin_phase();

  ThreadPool& pool_;
  const int rank_;
  uint32_t phase_ = 0;
};

class ThreadPool {
 public:
  explicit ThreadPool(int n_threads);  // 0: one per core
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Runs `work` on every worker and returns when all are done. Only one thread may call it at a time.
  void run(const std::function<void(Team&)>& work);

 private:
  friend class Team;

  // Work counters in turn: worker 0 clears the one half a ring ahead of the phase it enters. REQUIRES: a barrier at
  // least every kSlots / 2 phases, so that nobody is still in the phase whose counter is cleared.
  static constexpr uint32_t kSlots = 64;
  struct alignas(64) Counter {
    std::atomic<int64_t> next{0};
  };

  void worker_main(int rank);

  const int size_;
  std::vector<Counter> counters_;
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> barrier_generation_{0};
  alignas(64) std::atomic<uint32_t> region_{0};
  alignas(64) std::atomic<int32_t> running_{0};
  std::atomic<bool> stopping_{false};
  const std::function<void(Team&)>* work_ = nullptr;
  std::vector<std::thread> workers_;
};

inline int Team::size() const { return pool_.size(); }

}  // namespace chimere

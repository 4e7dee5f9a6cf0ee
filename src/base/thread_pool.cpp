#include "base/thread_pool.h"

#include <algorithm>

#include "base/platform/word_wait.h"
#include "base/relax.h"

namespace chimere {
namespace {

// A pause is some tens of cycles. Inside a region a worker spins ten to twenty microseconds, longer than most phases
// are uneven, then yields its core: on a shared machine the partner it waits for may need it. After a region it spins a
// few times as long before it sleeps, so that the next forward pass usually finds it awake.
constexpr int kBarrierSpins = 1000;
constexpr int kIdleSpins = 4000;

template <class Done>
bool spin_until(int spins, Done&& done) {
  for (int i = 0; i < spins; ++i) {
    if (done()) return true;
    relax();
  }
  return false;
}

}  // namespace

std::atomic<int64_t>& Team::begin_phase() {
  const uint32_t slot = phase_++ % ThreadPool::kSlots;
  // Half the ring away: no worker can still be in that phase (a barrier lies between), none has entered it yet.
  if (rank_ == 0) {
    pool_.counters_[(slot + ThreadPool::kSlots / 2) % ThreadPool::kSlots].next.store(0, std::memory_order_relaxed);
  }
  return pool_.counters_[slot].next;
}

void Team::sync() {
  const uint32_t n = static_cast<uint32_t>(pool_.size_);
  if (n == 1) return;
  const uint32_t generation = pool_.barrier_generation_.load(std::memory_order_acquire);
  if (pool_.arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n) {
    pool_.arrived_.store(0, std::memory_order_relaxed);
    pool_.barrier_generation_.store(generation + 1, std::memory_order_release);
    return;
  }
  auto passed = [&] { return pool_.barrier_generation_.load(std::memory_order_acquire) != generation; };
  while (!spin_until(kBarrierSpins, passed)) std::this_thread::yield();
}

ThreadPool::ThreadPool(int n_threads)
    : size_(n_threads > 0 ? n_threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      counters_(kSlots) {
  for (int rank = 1; rank < size_; ++rank) workers_.emplace_back([this, rank] { worker_main(rank); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_release);
  region_.fetch_add(1, std::memory_order_release);
  wake_all(region_);
  for (std::thread& w : workers_) w.join();
}

void ThreadPool::run(const std::function<void(Team&)>& work) {
  for (Counter& c : counters_) c.next.store(0, std::memory_order_relaxed);
  work_ = &work;
  running_.store(size_ - 1, std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_release);
  wake_all(region_);
  Team team(*this, 0);
  work(team);
  auto finished = [&] { return running_.load(std::memory_order_acquire) == 0; };
  while (!spin_until(kBarrierSpins, finished)) std::this_thread::yield();
}

void ThreadPool::worker_main(int rank) {
  uint32_t seen = 0;
  while (true) {
    auto woken = [&] { return region_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(kIdleSpins, woken)) wait_while(region_, seen);
    const uint32_t region = region_.load(std::memory_order_acquire);
    if (region == seen) continue;
    seen = region;
    if (stopping_.load(std::memory_order_acquire)) return;
    Team team(*this, rank);
    (*work_)(team);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace chimere

// host_lane.h  Host work in the middle of a stream: one kernel signals the host, the host works, a later kernel waits
// for it.
//
//   kernel A   writes the input of the work to pinned memory, then rings (simt::store_for_host)
//   ...        meanwhile the card does other work
//   kernel B   waits until the work is done (simt::load_of_host), then reads its results from pinned memory
//
// Both kernels may be in a graph, any number of times, but there is no second ring between a ring and its wait. Each
// block rings and waits for itself, through words of its own, so blocks share no counter. A thread of the lane polls
// for rings while an Attention is held, and sleeps otherwise.
//
// It replaces the runtime's host functions (an event, a thread of the driver that is woken, another event), which cost
// 40 us per layer more on one H200's host, and 300 when it was busy: bench/results/2026-11-16-cuda-h200.md.
//
// The emulator has no such thread: join(), which is called before kernel B, does the work, as late as possible.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// A lane as kernels see it: one word per block in each direction.
struct HostBell {
  uint32_t* rung = nullptr;  // [n_blocks], the card writes `message`, the host 0
  uint32_t* done = nullptr;  // [n_blocks], the card writes 0, the host 1
  uint32_t message = 0;
};

class HostLane {
 public:
  static constexpr int kMaxBlocks = 0xFFFF;  // what a message has room for
  static constexpr int kMaxTasks = 0xFFFF;

  // Called with the task, 0 .. kMaxTasks - 1, and the number of blocks that rang for it. Must not use CUDA.
  using Work = std::function<void(int task, int n_blocks)>;

  // REQUIRES: 1 <= max_blocks <= kMaxBlocks
  static Result<std::unique_ptr<HostLane>> create(int max_blocks, Work work);
  ~HostLane();
  HostLane(const HostLane&) = delete;

  // For kernels A and B, both with n_blocks blocks; B may have fewer.
  HostBell bell(int task, int n_blocks) const;
  void join(const Stream& stream);

  // Rings are answered while one of these exists. To be held from giving the card work that rings until it is done.
  class Attention {
   public:
    explicit Attention(HostLane* lane);  // none: nothing
    ~Attention();
    Attention(const Attention&) = delete;

   private:
    HostLane* lane_;
  };

 private:
  HostLane(PinnedBuffer<uint32_t> words, int max_blocks, Work work);
  // Does the work that was rung for, if any.
  bool answer();
  void look_out();

  PinnedBuffer<uint32_t> words_;  // rung, then done
  const int max_blocks_;
  const Work work_;
  std::atomic<int> n_attending_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace chimere::cuda

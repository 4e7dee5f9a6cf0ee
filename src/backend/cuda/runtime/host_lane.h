// host_lane.h  Work of the host in the middle of a stream's: a kernel rings, the host works, a later kernel waits for
// it.
//
//   kernel A   writes what the work reads into pinned memory, then rings (simt::store_for_host)
//   ...        the card goes on with this meanwhile
//   kernel B   waits until the work is done (simt::load_of_host), then reads its results from pinned memory
//
// Both kernels may stand in a graph, as often as one likes; between a ring and its wait there is no other ring. Each
// block rings and waits for itself, through words of its own, so no counter is shared by blocks. A thread of the lane
// looks out for rings while somebody attends, and sleeps otherwise.
//
// In place of the runtime's host functions (an event, a thread of the driver's that is woken, another event), which
// cost 40 us a layer more on one H200's host, and 300 when it was busy: bench/results/2026-11-16-cuda-h200.md.
//
// The emulator has no such thread: join(), which stands before kernel B, does the work, as late as may be.
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

// What kernels get of a lane: one word a block each way.
struct HostBell {
  uint32_t* rung = nullptr;  // [n_blocks], the card writes `message`, the host 0
  uint32_t* done = nullptr;  // [n_blocks], the card writes 0, the host 1
  uint32_t message = 0;
};

class HostLane {
 public:
  static constexpr int kMaxBlocks = 0xFFFF;  // what a message has room for
  static constexpr int kMaxTasks = 0xFFFF;

  // What is to be done, out of 0 .. kMaxTasks - 1, and how many blocks rang for it. It must not use CUDA.
  using Work = std::function<void(int task, int n_blocks)>;

  // REQUIRES: 1 <= max_blocks <= kMaxBlocks
  static Result<std::unique_ptr<HostLane>> create(int max_blocks, Work work);
  ~HostLane();
  HostLane(const HostLane&) = delete;

  // For kernel A and kernel B, both of n_blocks blocks or, of B, of fewer.
  HostBell bell(int task, int n_blocks) const;
  void join(const Stream& stream);

  // While one of these lives, rings are answered. Whoever gives the card work that rings holds one until it is done.
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
  // Does what was rung for, if anything was.
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

// stream.h  A CUDA stream: work given to it runs in order.
//
// In the emulator a stream from create() is as lazy as a device may be: work waits until somebody synchronises, so that
// a host that reads too early finds nothing. A default-constructed Stream runs it at once, which suits kernel tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"

struct CUstream_st;  // cudaStream_t is a pointer to it: no CUDA header is needed here

namespace chimere::cuda {

// The emulator's state of a stream.
struct EmulatedQueue {
  using Work = std::function<void()>;
  std::deque<Work> waiting;
  uint64_t n_given = 0;
  uint64_t n_done = 0;
  std::vector<Work>* recording = nullptr;  // while a graph is captured

  void give(Work work);
  void run_until(uint64_t n);
};

class Stream {
 public:
  Stream() = default;  // of the emulator alone
  static Result<Stream> create();
  ~Stream();
  Stream(Stream&& other) noexcept { swap(other); }
  Stream& operator=(Stream&& other) noexcept {
    Stream(std::move(other)).swap(*this);
    return *this;
  }

  // Waits until all work submitted so far is done, and returns its errors.
  Status synchronize() const;
  // Between any two places, device or host. Host memory must not change until the copy is done; only with pinned memory
  // does the copy overlap with the host's work.
  Status copy(void* to, const void* from, size_t bytes) const;
  // n runs of `bytes`, whose places on both sides are so far apart.
  struct Runs {
    void* first;
    size_t stride;
  };
  Status copy_rows(const Runs& to, const Runs& from, size_t bytes, size_t n) const;
  Status zero(void* to, size_t bytes) const;

  CUstream_st* handle() const { return handle_; }

  // Whether the kernels launched from now on ask for the largest shared-memory carve-out of an SM. Those for one row and
  // for a few do, because they overlap; for many rows the L1 cache is worth more.
  void want_all_shared(bool wants) { wants_all_shared_ = wants; }
  bool wants_all_shared() const { return wants_all_shared_; }

  // For the emulator: runs the work, queues it for later, or captures it in a graph.
  void submit(EmulatedQueue::Work work) const {
    if (queue_) {
      queue_->give(std::move(work));
    } else {
      work();
    }
  }

 private:
  friend class Event;
  friend class Graph;
  void swap(Stream& other) {
    std::swap(handle_, other.handle_);
    std::swap(queue_, other.queue_);
    std::swap(wants_all_shared_, other.wants_all_shared_);
  }

  CUstream_st* handle_ = nullptr;
  std::shared_ptr<EmulatedQueue> queue_;
  bool wants_all_shared_ = false;
};

}  // namespace chimere::cuda

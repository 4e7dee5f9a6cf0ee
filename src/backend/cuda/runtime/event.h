// event.h  A CUDA event: a mark in a stream that says whether, and when, the work before it was done.
#pragma once

#include <memory>
#include <utility>

#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

struct CUevent_st;

namespace chimere::cuda {

class Event {
 public:
  // Only a timed event can measure milliseconds; it costs the stream a little.
  static Result<Event> create(bool timed = false);
  // Waiting for it sleeps instead of spinning: frees a core, and costs some microseconds to wake up.
  static Result<Event> create_sleeping();
  ~Event();
  Event(Event&& other) noexcept { swap(other); }
  Event& operator=(Event&& other) noexcept {
    Event(std::move(other)).swap(*this);
    return *this;
  }

  Status record(const Stream& stream);
  // Whether the work given before the last record() is done. In the emulator, does it now.
  Result<bool> is_done() const;
  // Waits for the work given before the last record(); at once when there was none.
  Status synchronize() const;
  // Makes the stream wait for the mark. Where that is in a graph that is being captured, the stream joins the capture: the
  // captured stream has to wait for it before the capture ends.
  Status hold(const Stream& stream) const;
  // Whether the stream has finished all its work. In the emulator, does that work now.
  static Result<bool> none_waits(const Stream& stream);
  // REQUIRES: both timed, recorded and done. Zero in the emulator.
  Result<float> milliseconds_since(const Event& earlier) const;

 private:
  Event() = default;
  void swap(Event& other) {
    std::swap(handle_, other.handle_);
    std::swap(queue_, other.queue_);
    std::swap(mark_, other.mark_);
    std::swap(recording_, other.recording_);
  }

  CUevent_st* handle_ = nullptr;
  std::shared_ptr<EmulatedQueue> queue_;
  uint64_t mark_ = 0;
  std::vector<EmulatedQueue::Work>* recording_ = nullptr;  // the graph that the mark is in, while it is captured
};

}  // namespace chimere::cuda

// event.h  A mark in a stream: has the work before it been done, and when?
#pragma once

#include <memory>
#include <utility>

#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

struct CUevent_st;

namespace chimere::cuda {

class Event {
 public:
  // Only a timed event can tell milliseconds; it costs the stream a little.
  static Result<Event> create(bool timed = false);
  // Whoever waits for it sleeps, where others spin: a core for somebody else, for some microseconds of waking.
  static Result<Event> create_sleeping();
  ~Event();
  Event(Event&& other) noexcept { swap(other); }
  Event& operator=(Event&& other) noexcept {
    Event(std::move(other)).swap(*this);
    return *this;
  }

  Status record(const Stream& stream);
  // Waits for the work given before the last record(); at once when there was none.
  Status synchronize() const;
  // The stream goes on only after the mark.
  Status hold(const Stream& stream) const;
  // Whether the stream has done all that it was given. The emulator then does it.
  static Result<bool> none_waits(const Stream& stream);
  // REQUIRES: both timed, recorded and done. Zero in the emulator.
  Result<float> milliseconds_since(const Event& earlier) const;

 private:
  Event() = default;
  void swap(Event& other) {
    std::swap(handle_, other.handle_);
    std::swap(queue_, other.queue_);
    std::swap(mark_, other.mark_);
  }

  CUevent_st* handle_ = nullptr;
  std::shared_ptr<EmulatedQueue> queue_;
  uint64_t mark_ = 0;
};

}  // namespace chimere::cuda

// event.cpp  Events of the device and of the emulator.
#include "backend/cuda/runtime/event.h"

#include "base/check.h"

#ifndef CHIMERE_SIMT_EMULATOR
#include "backend/cuda/runtime/error.h"
#endif

namespace chimere::cuda {

#ifdef CHIMERE_SIMT_EMULATOR

Result<Event> Event::create(bool) { return Result<Event>{Event()}; }
Result<Event> Event::create_sleeping() { return create(); }

Event::~Event() = default;

Status Event::record(const Stream& stream) {
  queue_ = stream.queue_;
  mark_ = queue_ ? queue_->n_given : 0;
  recording_ = queue_ ? queue_->recording : nullptr;
  return Ok{};
}

Status Event::synchronize() const {
  if (queue_) queue_->run_until(mark_);
  return Ok{};
}

Result<bool> Event::is_done() const {
  TRY(synchronize());
  return true;
}

// What is captured is kept in the order in which it was given: nothing in it has to wait. The captured stream, when it
// waits for one that has joined the capture, lets it go.
Status Event::hold(const Stream& stream) const {
  if (recording_) {
    EmulatedQueue& held = *stream.queue_;
    CHECK(!held.recording || held.recording == recording_);
    if (held.recording && queue_ != stream.queue_) queue_->recording = nullptr;
    held.recording = recording_;
    return Ok{};
  }
  stream.submit([queue = queue_, mark = mark_] {
    if (queue) queue->run_until(mark);
  });
  return Ok{};
}

Result<bool> Event::none_waits(const Stream& stream) {
  TRY(stream.synchronize());
  return true;
}

Result<float> Event::milliseconds_since(const Event&) const { return 0.0f; }

#else

Result<Event> Event::create(bool timed) {
  Event event;
  TRY(checked(cudaEventCreateWithFlags(&event.handle_, timed ? cudaEventDefault : cudaEventDisableTiming),
              "cudaEventCreate"));
  return Result<Event>{std::move(event)};
}

Result<Event> Event::create_sleeping() {
  Event event;
  TRY(checked(cudaEventCreateWithFlags(&event.handle_, cudaEventDisableTiming | cudaEventBlockingSync),
              "cudaEventCreate"));
  return Result<Event>{std::move(event)};
}

Event::~Event() {
  if (handle_) cudaEventDestroy(handle_);
}

Status Event::record(const Stream& stream) {
  return checked(cudaEventRecord(handle_, stream.handle()), "cudaEventRecord");
}

Status Event::synchronize() const { return checked(cudaEventSynchronize(handle_), "cudaEventSynchronize"); }

Result<bool> Event::is_done() const {
  const cudaError_t answer = cudaEventQuery(handle_);
  if (answer == cudaErrorNotReady) return false;
  TRY(checked(answer, "cudaEventQuery"));
  return true;
}

Status Event::hold(const Stream& stream) const {
  return checked(cudaStreamWaitEvent(stream.handle(), handle_, 0), "cudaStreamWaitEvent");
}

Result<bool> Event::none_waits(const Stream& stream) {
  const cudaError_t answer = cudaStreamQuery(stream.handle());
  if (answer == cudaErrorNotReady) return false;
  TRY(checked(answer, "cudaStreamQuery"));
  return true;
}

Result<float> Event::milliseconds_since(const Event& earlier) const {
  float ms = 0;
  TRY(checked(cudaEventElapsedTime(&ms, earlier.handle_, handle_), "cudaEventElapsedTime"));
  return ms;
}

#endif

}  // namespace chimere::cuda

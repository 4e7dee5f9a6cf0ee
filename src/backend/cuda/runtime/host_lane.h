// host_lane.h  Work of the host in the middle of a stream's: it runs beside what the stream is given next.
//
//   lane.begin(stream, work, data);   // when all that the stream was given so far is done, work(data) runs on the host
//   ...                               // the card goes on with this meanwhile
//   lane.join(stream);                // what comes now waits for both
//
// Both may be written into a graph. The emulator runs the work as late as may be, at join(): whatever is between must
// neither need its results nor touch what it reads.
#pragma once

#include "backend/cuda/runtime/event.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

class HostLane {
 public:
  using Work = void (*)(void* data);

  static Result<HostLane> create();

  // `data` lives as long as a graph that this was written into. The work must not use CUDA. One at a time.
  Status begin(const Stream& stream, Work work, void* data);
  Status join(const Stream& stream);

 private:
  HostLane(Stream lane, Event ready, Event done)
      : lane_(std::move(lane)), ready_(std::move(ready)), done_(std::move(done)) {}

  Stream lane_;
  Event ready_, done_;
  Work work_ = nullptr;  // of the emulator, between begin and join
  void* data_ = nullptr;
};

}  // namespace chimere::cuda

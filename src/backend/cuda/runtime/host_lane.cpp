#include "backend/cuda/runtime/host_lane.h"

#include <utility>

#include "base/check.h"

#ifndef CHIMERE_SIMT_EMULATOR
#include "backend/cuda/runtime/error.h"
#endif

namespace chimere::cuda {

Result<HostLane> HostLane::create() {
  TRY_ASSIGN(Stream lane, Stream::create());
  TRY_ASSIGN(Event ready, Event::create());
  TRY_ASSIGN(Event done, Event::create());
  return HostLane(std::move(lane), std::move(ready), std::move(done));
}

#ifdef CHIMERE_SIMT_EMULATOR

Status HostLane::begin(const Stream&, Work work, void* data) {
  CHECK(!work_ && "the work before was not joined");
  work_ = work;
  data_ = data;
  return Ok{};
}

Status HostLane::join(const Stream& stream) {
  CHECK(work_);
  stream.submit([work = std::exchange(work_, nullptr), data = data_] { work(data); });
  return Ok{};
}

#else

Status HostLane::begin(const Stream& stream, Work work, void* data) {
  TRY(ready_.record(stream));
  TRY(ready_.hold(lane_));
  TRY(checked(cudaLaunchHostFunc(lane_.handle(), work, data), "cudaLaunchHostFunc"));
  return done_.record(lane_);
}

Status HostLane::join(const Stream& stream) { return done_.hold(stream); }

#endif

}  // namespace chimere::cuda

// stream.cpp  Streams of the device and of the emulator.
#include "backend/cuda/runtime/stream.h"

#include <cstring>
#include <string>

#include "base/check.h"

#ifndef CHIMERE_SIMT_EMULATOR
#include "backend/cuda/runtime/error.h"
#endif

namespace chimere::cuda {

void EmulatedQueue::give(Work work) {
  if (recording) {
    recording->push_back(std::move(work));
    return;
  }
  waiting.push_back(std::move(work));
  n_given++;
}

void EmulatedQueue::run_until(uint64_t n) {
  CHECK(!recording && "a stream that is being captured cannot be waited for");
  while (n_done < n) {
    waiting.front()();
    waiting.pop_front();
    n_done++;
  }
}

#ifdef CHIMERE_SIMT_EMULATOR

Result<Stream> Stream::create() {
  Stream stream;
  stream.queue_ = std::make_shared<EmulatedQueue>();
  return Result<Stream>{std::move(stream)};
}

Stream::~Stream() = default;

Status Stream::synchronize() const {
  if (queue_) queue_->run_until(queue_->n_given);
  return Ok{};
}

Status Stream::copy(void* to, const void* from, size_t bytes) const {
  if (bytes > 0) submit([=] { std::memmove(to, from, bytes); });
  return Ok{};
}

Status Stream::copy_rows(const Runs& to, const Runs& from, size_t bytes, size_t n) const {
  submit([=] {
    for (size_t i = 0; i < n; ++i) {
      std::memmove(static_cast<char*>(to.first) + i * to.stride, static_cast<char*>(from.first) + i * from.stride,
                   bytes);
    }
  });
  return Ok{};
}

Status Stream::zero(void* to, size_t bytes) const {
  if (bytes > 0) submit([=] { std::memset(to, 0, bytes); });
  return Ok{};
}

#else

Result<Stream> Stream::create() {
  Stream stream;
  TRY(checked(cudaStreamCreateWithFlags(&stream.handle_, cudaStreamNonBlocking), "cudaStreamCreate"));
  return Result<Stream>{std::move(stream)};
}

Stream::~Stream() {
  if (handle_) cudaStreamDestroy(handle_);
}

Status Stream::synchronize() const { return checked(cudaStreamSynchronize(handle_), "cudaStreamSynchronize"); }

Status Stream::copy(void* to, const void* from, size_t bytes) const {
  if (bytes == 0) return Ok{};
  return checked(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_),
                 "cudaMemcpyAsync of " + std::to_string(bytes) + " bytes");
}

Status Stream::copy_rows(const Runs& to, const Runs& from, size_t bytes, size_t n) const {
  return checked(cudaMemcpy2DAsync(to.first, to.stride, from.first, from.stride, bytes, n, cudaMemcpyDefault, handle_),
                 "cudaMemcpy2DAsync");
}

Status Stream::zero(void* to, size_t bytes) const {
  if (bytes == 0) return Ok{};
  return checked(cudaMemsetAsync(to, 0, bytes, handle_), "cudaMemsetAsync of " + std::to_string(bytes) + " bytes");
}

#endif

}  // namespace chimere::cuda

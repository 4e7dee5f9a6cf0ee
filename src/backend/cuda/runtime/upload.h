// upload.h  Uploads weights to the card: one pinned staging buffer is filled while the other is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "backend/backend.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/event.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

class Uploader {
 public:
  // A few milliseconds of copying each: enough to keep the bus busy, little host memory.
  static constexpr uint64_t kStagingBytes = uint64_t{32} << 20;

  // total_bytes: of all uploads to come, for `progress`.
  static Result<Uploader> create(uint64_t total_bytes, LoadProgress progress, uint64_t staging_bytes = kStagingBytes);

  // Writes bytes [offset, offset + bytes) of what is uploaded.
  using Fill = std::function<void(std::byte* to, uint64_t offset, uint64_t bytes)>;

  // Host bytes as they are.
  Status upload(void* to, const void* from, uint64_t bytes);
  // What `fill` makes, piece by piece: every piece but the last is a whole number of granules, and so is its offset.
  // Fails when a granule is larger than a staging buffer.
  Status upload(void* to, uint64_t bytes, uint64_t granule_bytes, const Fill& fill);
  // Counts bytes that were not uploaded here as done.
  void skip(uint64_t bytes) { advance(bytes); }

  // Waits until all is on the card.
  Status finish();

 private:
  struct Staging {
    PinnedBuffer<std::byte> buffer;
    Event copied;
  };

  Uploader(Stream stream, Staging a, Staging b) : stream_(std::move(stream)), staging_{std::move(a), std::move(b)} {}
  void advance(uint64_t bytes);

  Stream stream_;
  Staging staging_[2];
  int next_ = 0;
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;
  LoadProgress progress_;
};

}  // namespace chimere::cuda

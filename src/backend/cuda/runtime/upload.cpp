// upload.cpp  Staged copies of weights.
#include "backend/cuda/runtime/upload.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace chimere::cuda {

Result<Uploader> Uploader::create(uint64_t total_bytes, LoadProgress progress, uint64_t staging_bytes) {
  TRY_ASSIGN(Stream stream, Stream::create());
  TRY_ASSIGN(Event copied_a, Event::create());
  TRY_ASSIGN(Event copied_b, Event::create());
  TRY_ASSIGN(PinnedBuffer<std::byte> a, PinnedBuffer<std::byte>::create(staging_bytes));
  TRY_ASSIGN(PinnedBuffer<std::byte> b, PinnedBuffer<std::byte>::create(staging_bytes));
  Uploader uploader(std::move(stream), {std::move(a), std::move(copied_a)}, {std::move(b), std::move(copied_b)});
  uploader.total_bytes_ = total_bytes;
  uploader.progress_ = std::move(progress);
  return Result<Uploader>{std::move(uploader)};
}

Status Uploader::upload(void* to, const void* from, uint64_t bytes) {
  return upload(to, bytes, 1, [from](std::byte* piece, uint64_t offset, uint64_t piece_bytes) {
    std::memcpy(piece, static_cast<const std::byte*>(from) + offset, piece_bytes);
  });
}

Status Uploader::upload(void* to, uint64_t bytes, uint64_t granule_bytes, const Fill& fill) {
  const uint64_t piece_bytes = staging_[0].buffer.size() / granule_bytes * granule_bytes;
  if (piece_bytes == 0) {
    return Error{Code::unsupported, "upload: expected pieces of at most " + bytes_text(staging_[0].buffer.size()) +
                                        ", found " + bytes_text(granule_bytes)};
  }
  for (uint64_t offset = 0; offset < bytes; offset += piece_bytes) {
    const uint64_t n = std::min(piece_bytes, bytes - offset);
    Staging& staging = staging_[next_];
    next_ ^= 1;
    TRY(staging.copied.synchronize());
    fill(staging.buffer.data(), offset, n);
    TRY(stream_.copy(static_cast<std::byte*>(to) + offset, staging.buffer.data(), n));
    TRY(staging.copied.record(stream_));
    advance(n);
  }
  return Ok{};
}

void Uploader::advance(uint64_t bytes) {
  done_bytes_ += bytes;
  if (progress_) progress_(done_bytes_, total_bytes_);
}

Status Uploader::finish() { return stream_.synchronize(); }

}  // namespace chimere::cuda

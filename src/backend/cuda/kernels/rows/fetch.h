// fetch.h  Pinned bytes fetched by the device itself: the first launch of a step brings what the host wrote for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// Stands before the bytes. It is read by the device: a graph fetches another number every time.
struct FetchHeader {
  uint32_t n_pieces;  // of kFetchPiece bytes
  uint32_t reserved[3];
};
inline constexpr size_t kFetchPiece = 16;
static_assert(sizeof(FetchHeader) == kFetchPiece);

inline constexpr size_t kMaxFetches = 2;  // of a launch
// What is read whatever the header says.
inline constexpr size_t kFetchAtOnce = 256 * kFetchPiece;

struct Fetch {
  const FetchHeader* from = nullptr;  // pinned, 16-byte aligned, followed by kFetchAtOnce bytes at least
  std::byte* to = nullptr;            // as many as the header says, 16-byte aligned
};

// At most kMaxFetches of them, one launch.
Status fetch(const Stream& stream, std::span<const Fetch> fetches);

}  // namespace chimere::cuda

// parcel.h  The inputs of a pass that the host writes to pinned memory, and their copy on the device.
//
// They are sent by a runtime copy, or offered to a step that fetches them with a kernel (kernels/rows/fetch.h), so that
// the step's graph is all that has to be submitted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/rows/fetch.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

class Parcel {
 public:
  // The most that a kernel of a few blocks should fetch.
  static constexpr uint64_t kMostFetched = uint64_t{64} << 10;

  static Result<Parcel> create(Ledger& ledger, uint64_t capacity);
  // What that takes of the card.
  static uint64_t device_bytes(uint64_t capacity);

  // Sets the size; the bytes have to be written again. May reallocate.
  // REQUIRES: the stream is done with what was sent before.
  Status resize(uint64_t bytes);
  std::byte* host() const { return pinned_.data() + sizeof(FetchHeader); }
  std::byte* device() const { return device_.data(); }
  // The pinned byte that a device address is a copy of.
  template <class T>
  const T* host_of(const T* on_device) const {
    return reinterpret_cast<const T*>(host() + (reinterpret_cast<const std::byte*>(on_device) - device()));
  }
  uint64_t capacity() const { return device_.size(); }
  // How often host() and device() have changed: addresses from before are stale.
  uint64_t n_moves() const { return n_moves_; }

  // Starts the copy.
  Status send(const Stream& stream) const;
  // Leaves the bytes to the fetch() that the stream runs next, unless the parcel is large: then it is sent.
  Status offer(const Stream& stream) const;
  Fetch fetch() const { return {header(), device_.data()}; }

 private:
  explicit Parcel(Ledger& ledger) : ledger_(&ledger) {}
  Status reserve(uint64_t capacity);
  FetchHeader* header() const { return reinterpret_cast<FetchHeader*>(pinned_.data()); }

  Ledger* ledger_;
  PinnedBuffer<std::byte> pinned_;  // the header, then the bytes
  DeviceBuffer<std::byte> device_;
  uint64_t size_ = 0;
  uint64_t n_moves_ = 0;
};

}  // namespace chimere::cuda

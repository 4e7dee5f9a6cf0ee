// buffer.h  Owning buffers: arrays on the card (charged to the ledger) and pinned arrays on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "backend/cuda/runtime/device.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/runtime/stream.h"
#include "base/check.h"
#include "base/result.h"

namespace chimere::cuda {

template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceBuffer() = default;
  static Result<DeviceBuffer> create(Ledger& ledger, Purpose purpose, size_t size) {
    DeviceBuffer buffer;
    if (size > 0) {
      TRY_ASSIGN(std::byte * memory, ledger.allocate(purpose, size * sizeof(T)));
      buffer.data_ = reinterpret_cast<T*>(memory);
    }
    buffer.ledger_ = &ledger;
    buffer.purpose_ = purpose;
    buffer.size_ = size;
    return Result<DeviceBuffer>{std::move(buffer)};
  }
  ~DeviceBuffer() {
    if (data_) ledger_->release(purpose_, reinterpret_cast<std::byte*>(data_), size_bytes());
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t size_bytes() const { return size_ * sizeof(T); }

  // REQUIRES: from.size() <= size(); `from` stays valid until the stream has copied it.
  Status write(const Stream& stream, std::span<const T> from) const {
    CHECK(from.size() <= size_);
    return stream.copy(data_, from.data(), from.size_bytes());
  }
  Status read(const Stream& stream, std::span<T> to) const {
    CHECK(to.size() <= size_);
    return stream.copy(to.data(), data_, to.size_bytes());
  }
  Status zero(const Stream& stream) const { return stream.zero(data_, size_bytes()); }

 private:
  void swap(DeviceBuffer& other) {
    std::swap(ledger_, other.ledger_);
    std::swap(purpose_, other.purpose_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  Ledger* ledger_ = nullptr;
  Purpose purpose_ = Purpose::scratch;
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
class PinnedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PinnedBuffer() = default;
  static Result<PinnedBuffer> create(size_t size) {
    PinnedBuffer buffer;
    if (size > 0) {
      TRY_ASSIGN(void* memory, allocate_pinned(size * sizeof(T)));
      buffer.data_ = static_cast<T*>(memory);
    }
    buffer.size_ = size;
    return Result<PinnedBuffer>{std::move(buffer)};
  }
  ~PinnedBuffer() {
    if (data_) free_pinned(data_);
  }
  PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    PinnedBuffer(std::move(other)).swap(*this);
    return *this;
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t size_bytes() const { return size_ * sizeof(T); }
  T& operator[](size_t i) const { return data_[i]; }
  std::span<T> span() const { return {data_, size_}; }

 private:
  void swap(PinnedBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  size_t size_ = 0;
};

// One allocation divided into pieces that live as long as it does, so that many matrices do not take 2 MiB pages each.
class DeviceArena {
 public:
  static constexpr uint64_t kAlign = 256;
  static constexpr uint64_t padded(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

  DeviceArena() = default;
  // REQUIRES: bytes is the sum of padded() over the pieces to come.
  static Result<DeviceArena> create(Ledger& ledger, Purpose purpose, uint64_t bytes) {
    DeviceArena arena;
    TRY_ASSIGN(arena.buffer_, DeviceBuffer<std::byte>::create(ledger, purpose, bytes));
    return Result<DeviceArena>{std::move(arena)};
  }

  // Uninitialised, 256-byte aligned. Null for a piece of no bytes.
  std::byte* take(uint64_t bytes) {
    if (bytes == 0) return nullptr;
    CHECK(padded(bytes) <= buffer_.size() - used_bytes_);
    std::byte* piece = buffer_.data() + used_bytes_;
    used_bytes_ += padded(bytes);
    return piece;
  }
  template <class T>
  T* take_array(uint64_t n) {
    return reinterpret_cast<T*>(take(n * sizeof(T)));
  }

  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t size_bytes() const { return buffer_.size_bytes(); }

 private:
  DeviceBuffer<std::byte> buffer_;
  uint64_t used_bytes_ = 0;
};

}  // namespace chimere::cuda

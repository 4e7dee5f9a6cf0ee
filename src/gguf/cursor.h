// cursor.h  A read position in untrusted bytes; every read is checked against the bytes that remain.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace chimere::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF is read by copying little-endian values");

class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  // False, without moving, when too few bytes remain.
  template <class T>
  bool read(T& out) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    if (sizeof(T) > remaining()) return false;
    std::memcpy(&out, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  // REQUIRES: n <= remaining().
  std::span<const std::byte> take(uint64_t n) {
    const auto out = bytes_.subspan(position_, n);
    position_ += n;
    return out;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace chimere::gguf

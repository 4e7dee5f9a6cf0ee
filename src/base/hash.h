// hash.h  A fast 64-bit hash of bytes, for fingerprints and checksums. Not cryptographic.
//
// Eight bytes at a time in four lanes, so that hashing tens of megabytes of state costs milliseconds; multiply and
// rotate as in the xxHash family. The value is part of file formats: a change of it is a change of their version.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace chimere {

inline uint64_t hash_mix(uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  return h ^ (h >> 33);
}

inline uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0) {
  constexpr uint64_t kA = 0x9e3779b185ebca87ULL, kB = 0xc2b2ae3d27d4eb4fULL;
  uint64_t lane[4] = {seed + kA, seed ^ kB, seed - kA, seed + kA * kB};
  const std::byte* p = bytes.data();
  size_t n = bytes.size();
  for (; n >= 32; n -= 32, p += 32) {
    for (int i = 0; i < 4; ++i) {
      uint64_t word;
      std::memcpy(&word, p + 8 * i, 8);
      lane[i] = std::rotl(lane[i] + word * kB, 31) * kA;
    }
  }
  uint64_t h = std::rotl(lane[0], 1) + std::rotl(lane[1], 7) + std::rotl(lane[2], 12) + std::rotl(lane[3], 18);
  for (; n > 0;) {
    uint64_t word = 0;
    const size_t take = n < 8 ? n : 8;
    std::memcpy(&word, p, take);
    h = std::rotl(h ^ (word * kB), 27) * kA + take;
    p += take;
    n -= take;
  }
  return hash_mix(h ^ bytes.size());
}

inline uint64_t hash64(std::string_view text, uint64_t seed = 0) {
  return hash64(std::as_bytes(std::span(text.data(), text.size())), seed);
}

}  // namespace chimere

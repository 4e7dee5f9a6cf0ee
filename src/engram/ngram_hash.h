// ngram_hash.h  Hashes of token n-grams: 64-bit FNV-1a over the four little-endian bytes of each token.
//
// A key is hashed from its newest token to its oldest. So the hash of order n + 1 goes on where that of order n ended,
// and one pass over eight tokens gives the hashes of all orders.
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace chimere::engram {

inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325ULL;
inline constexpr uint64_t kFnvPrime = 0x100000001b3ULL;
// One writer of version 1 files multiplied by this number instead.
inline constexpr uint64_t kShortPrime = 0x1000001b3ULL;

inline uint64_t fnv_add(uint64_t hash, uint32_t token, uint64_t prime = kFnvPrime) {
  for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ ((token >> shift) & 0xff)) * prime;
  return hash;
}

// What a table stores. FNV-1a leaves its high bits poorly mixed and we take places from them; 0 means an empty slot.
inline uint64_t stored_hash(uint64_t fnv) {
  const uint64_t mixed = hash_mix(fnv);
  return mixed != 0 ? mixed : 1;
}

// A place from 0 to n - 1 by the high bits of a hash: any n, without a division.
inline uint64_t place_of(uint64_t hash, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * n) >> 64);
}

}  // namespace chimere::engram

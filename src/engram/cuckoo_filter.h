// cuckoo_filter.h  Tier 0: is this n-gram possibly in the table? "No" is certain, "yes" is wrong in 0.02 % of cases.
//
// Buckets of four 16-bit fingerprints, one bucket a 64-bit word. A fingerprint lies in one of two buckets; each is
// found from the other and the fingerprint alone: second = (place_of(fingerprint) - first) mod n, which is its own
// inverse for any n, so that the filter need not be a power of two in size. Both buckets are read before either is
// looked at: where the filter is larger than the cache, the two misses overlap.
//
// Expected false positives at a full load: 2 buckets * 4 / 2^16 = 0.012 %. Size: 16.8 bits an n-gram.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engram/ngram_hash.h"

namespace chimere::engram {

class CuckooFilter {
 public:
  CuckooFilter() = default;
  // A view: the words live elsewhere, in a mapped file for instance. Any content is safe; no words: everything passes.
  explicit CuckooFilter(std::span<const uint64_t> buckets) : buckets_(buckets) {}

  // `hash`: as stored_hash() gives it.
  bool may_contain(uint64_t hash) const {
    const uint64_t n = buckets_.size();
    if (n == 0) return true;
    const uint64_t fingerprint = fingerprint_of(hash), first = place_of(hash, n);
    const uint64_t a = buckets_[first], b = buckets_[other_bucket(first, fingerprint, n)];
    const uint64_t wanted = fingerprint * kOnes;
    return ((has_zero(a ^ wanted) | has_zero(b ^ wanted)) != 0);
  }

  // Words of a filter over these hashes. The same hashes in the same order give the same words.
  static std::vector<uint64_t> build(std::span<const uint64_t> hashes);

 private:
  static constexpr uint64_t kOnes = 0x0001000100010001ULL;

  static uint64_t fingerprint_of(uint64_t hash) {
    const uint64_t low = hash & 0xffff;
    return low != 0 ? low : 1;  // 0 is an empty place
  }
  static uint64_t other_bucket(uint64_t bucket, uint64_t fingerprint, uint64_t n) {
    const uint64_t pivot = place_of(fingerprint * 0x9e3779b97f4a7c15ULL, n);
    return pivot >= bucket ? pivot - bucket : pivot + n - bucket;
  }
  // Not zero exactly when one of the four 16-bit lanes is zero.
  static uint64_t has_zero(uint64_t lanes) { return (lanes - kOnes) & ~lanes & (kOnes << 15); }

  static bool insert(std::vector<uint64_t>& buckets, uint64_t hash, uint64_t& noise);

  std::span<const uint64_t> buckets_;
};

}  // namespace chimere::engram

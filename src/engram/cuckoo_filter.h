// cuckoo_filter.h  Tier 0: is this n-gram possibly in the table? "No" is certain, "yes" is wrong in 0.02 % of cases.
// A "yes" also says in which lanes the n-gram may lie, so that tier 1 keeps its slots in the same order.
//
// Buckets of four 16-bit fingerprints, one bucket a 64-bit word. A fingerprint lies in one of two buckets; each is
// found from the other and the fingerprint alone: second = (place_of(fingerprint) - first) mod n, which is its own
// inverse for any n, so that the filter need not be a power of two in size. Both buckets are read before either is
// looked at: where the filter is larger than the cache, the two misses overlap.
//
// Expected false positives at a full load: 2 buckets * 4 / 2^16 = 0.012 %. Size: 16.8 bits an n-gram.
#pragma once

#include <bit>
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

  static constexpr uint64_t kLanes = 4;  // of a bucket
  uint64_t n_lanes() const { return kLanes * buckets_.size(); }

  // The lanes that hold the fingerprint of a hash. Taking one out has no branch: which of the two buckets it is in is
  // chance, and a wrong guess of the processor would keep the next lookup from overlapping with this one.
  struct Matches {
    uint64_t marks = 0;  // bit 16 * lane of the first bucket, 16 * lane + 1 of the second
    uint64_t first = 0, second = 0;

    bool empty() const { return marks == 0; }
    // Number of a lane, below n_lanes(). REQUIRES: not empty.
    uint64_t take() {
      const auto mark = static_cast<uint64_t>(std::countr_zero(marks));
      marks &= marks - 1;
      return kLanes * (mark & 1 ? second : first) + mark / 16;
    }
  };
  // REQUIRES: n_lanes() > 0.
  Matches matches(uint64_t hash) const {
    const uint64_t n = buckets_.size(), fingerprint = fingerprint_of(hash), first = place_of(hash, n);
    const uint64_t second = other_bucket(first, fingerprint, n), wanted = fingerprint * kOnes;
    return {(has_zero(buckets_[first] ^ wanted) >> 15) | (has_zero(buckets_[second] ^ wanted) >> 14), first, second};
  }

  // `hash`: as stored_hash() gives it.
  bool may_contain(uint64_t hash) const { return buckets_.empty() || !matches(hash).empty(); }

  struct Built {
    static constexpr uint32_t kNobody = UINT32_MAX;
    std::vector<uint64_t> buckets;
    std::vector<uint32_t> lodgers;  // of each lane: the index of its hash, or kNobody
  };
  // The same hashes in the same order give the same filter. REQUIRES: fewer than kNobody hashes.
  static Built build(std::span<const uint64_t> hashes);

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
  // The high bit of every 16-bit lane that is zero; rarely also of one above such a lane, never of others.
  static uint64_t has_zero(uint64_t lanes) { return (lanes - kOnes) & ~lanes & (kOnes << 15); }

  static bool insert(Built& built, uint64_t hash, uint32_t index, uint64_t& noise);

  std::span<const uint64_t> buckets_;
};

}  // namespace chimere::engram

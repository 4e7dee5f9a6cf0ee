#include "engram/cuckoo_filter.h"

#include <algorithm>
#include <utility>

namespace chimere::engram {
namespace {

constexpr double kLoad = 0.95;   // cuckoo hashing with buckets of four works up to about 0.98
constexpr int kMaxKicks = 2000;  // beyond this the filter is made a little larger and built anew

}  // namespace

bool CuckooFilter::insert(Built& built, uint64_t hash, uint32_t index, uint64_t& noise) {
  std::vector<uint64_t>& buckets = built.buckets;
  uint64_t fingerprint = fingerprint_of(hash), bucket = place_of(hash, buckets.size());
  for (int kick = 0; kick < kMaxKicks; ++kick) {
    for (const uint64_t b : {bucket, other_bucket(bucket, fingerprint, buckets.size())}) {
      for (int lane = 0; lane < 64; lane += 16) {
        if (((buckets[b] >> lane) & 0xffff) != 0) continue;
        buckets[b] |= fingerprint << lane;
        built.lodgers[b * kLanes + static_cast<uint64_t>(lane) / 16] = index;
        return true;
      }
    }
    // Both are full: one of the lodgers moves to its other bucket. Which one must vary, or two could swap for ever.
    noise = hash_mix(noise + 1);
    if (noise & 4) bucket = other_bucket(bucket, fingerprint, buckets.size());
    const int lane = static_cast<int>(noise & 3) * 16;
    const uint64_t evicted = (buckets[bucket] >> lane) & 0xffff;
    buckets[bucket] ^= (evicted ^ fingerprint) << lane;
    std::swap(built.lodgers[bucket * kLanes + static_cast<uint64_t>(lane) / 16], index);
    fingerprint = evicted;
    bucket = other_bucket(bucket, fingerprint, buckets.size());
  }
  return false;
}

CuckooFilter::Built CuckooFilter::build(std::span<const uint64_t> hashes) {
  auto n = std::max<uint64_t>(2, static_cast<uint64_t>(static_cast<double>(hashes.size()) / (4 * kLoad)) + 1);
  while (true) {
    Built built{std::vector<uint64_t>(n, 0), std::vector<uint32_t>(n * kLanes, Built::kNobody)};
    uint64_t noise = 0;
    uint32_t index = 0;
    while (index < hashes.size() && insert(built, hashes[index], index, noise)) ++index;
    if (index == hashes.size()) return built;
    n += n / 16 + 1;
  }
}

}  // namespace chimere::engram

// table_format.h  The file of a table, version 2. Little-endian; every section starts on a multiple of 64 bytes.
//
//   FileHeader
//   filter     n_buckets words of 64 bits: the cuckoo filter over all keys
//   slots      one a lane of the filter, 32 bits: where its record begins, in units of 8 bytes; kNoRecord: nobody's
//   records    one a key, sorted by order and then by key, so that tables are merged as streams
//   sources    who taught what, and when
//
//   record     u32 n_entries << 4 | order, u32 total of the counts | u32 key[order], newest token first | padding to 8
//              | entries
//   entry      u64: token (24 bits) | count (20 bits, saturating) | index of its source (20 bits)
//   source     u32 day | f32 score | u64 tokens | u32 bytes of the id | u32 0 | id | padding to 8
//
// Filter and slots are a cuckoo hash table, open addressing with two buckets a key: a lane that holds the fingerprint
// of a hash leads to one record, without a walk. 6.3 bytes a key: they stay in a cache long after the records do not,
// and both are read at addresses that the hash alone gives, so that a hit waits for memory once, or where nothing is
// cached twice.
//
// docs/engram.md has the same in words, and version 1. The checksums find damage; a file made to harm us can have right
// ones, so that lookups check every offset they follow.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace chimere::engram {

static_assert(std::endian::native == std::endian::little, "tables are mapped as they are");

inline constexpr uint32_t kMagic = 0x454e4752;  // both versions
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kHashScheme = 2;  // ngram_hash.h; slots in the order of the filter
inline constexpr int kMinOrder = 2, kMaxOrder = 8;
inline constexpr uint64_t kSectionAlign = 64;

struct FileHeader {
  uint32_t magic = kMagic, version = kVersion;
  uint32_t header_bytes = 0, hash_scheme = kHashScheme;
  uint64_t tokenizer = 0;  // fingerprint of the vocabulary
  uint32_t n_vocab = 0, n_sources = 0;
  uint32_t min_order = kMinOrder, max_order = kMaxOrder;  // tokens of a key
  uint64_t n_keys = 0, n_entries = 0;
  uint64_t filter_offset = 0, n_buckets = 0;
  uint64_t slots_offset = 0, n_slots = 0;  // 4 * n_buckets
  uint64_t records_offset = 0, records_bytes = 0;
  uint64_t sources_offset = 0, sources_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t reserved = 0;
  uint64_t body_checksum = 0;    // hash64 of the four sections, each seeded with the one before
  uint64_t header_checksum = 0;  // hash64 of the bytes above
};
static_assert(sizeof(FileHeader) == 152);

inline constexpr uint32_t kNoRecord = std::numeric_limits<uint32_t>::max();
inline constexpr uint64_t kMaxRecordWords = kNoRecord;   // 34 GB of records
inline constexpr uint32_t kMaxEntries = (1u << 28) - 1;  // of one record

// A next token that a source taught, and how often.
struct Entry {
  static constexpr uint32_t kMaxToken = (1u << 24) - 1, kMaxCount = (1u << 20) - 1, kMaxSource = (1u << 20) - 1;
  uint32_t token, count, source;

  static Entry unpack(uint64_t word) {
    return {static_cast<uint32_t>(word) & kMaxToken, static_cast<uint32_t>(word >> 24) & kMaxCount,
            static_cast<uint32_t>(word >> 44)};
  }
  uint64_t pack() const {
    return token | (static_cast<uint64_t>(std::min(count, kMaxCount)) << 24) | (static_cast<uint64_t>(source) << 44);
  }
};

struct SourceHead {
  uint32_t day = 0;  // since 1970-01-01; kNeverAges: curated text
  float score = 0;
  uint64_t n_tokens = 0;
  uint32_t id_bytes = 0, reserved = 0;
};
static_assert(sizeof(SourceHead) == 24);

inline constexpr uint32_t kNeverAges = std::numeric_limits<uint32_t>::max();
inline constexpr uint32_t kHalfLifeDays = 30, kGoneAfterDays = 90;

// What is left of a weight of 1: it halves every 30 days and is gone after 90.
inline float weight_at_age(uint32_t taught_day, uint32_t today) {
  if (taught_day == kNeverAges || today <= taught_day) return 1.0f;
  const uint32_t age = today - taught_day;
  return age >= kGoneAfterDays ? 0.0f : 1.0f / static_cast<float>(1u << (age / kHalfLifeDays));
}

// Bytes of a record before its entries.
inline constexpr uint64_t record_head_bytes(int order) { return (8 + 4 * static_cast<uint64_t>(order) + 7) / 8 * 8; }

}  // namespace chimere::engram

// legacy_table_test.cpp  Files of version 1, written here byte by byte with hashes computed here, with either prime.
#include <bit>
#include <cstring>

#include "engram/tables_for_test.h"

namespace chimere::engram {
namespace {

// Written from the description of the format alone; shares no code with the reader.
uint64_t fnv1a(const Ids& key, uint64_t prime) {
  uint64_t hash = 14695981039346656037ULL;
  for (const int32_t token : key) {
    unsigned char four[4] = {static_cast<unsigned char>(token), static_cast<unsigned char>(token >> 8),
                             static_cast<unsigned char>(token >> 16), static_cast<unsigned char>(token >> 24)};
    for (const unsigned char byte : four) {
      hash ^= byte;
      hash *= prime;
    }
  }
  return hash;
}

constexpr uint64_t kStandard = 1099511628211ULL;               // 2^40 + 0x1b3
constexpr uint64_t kShortPrime = (uint64_t{1} << 32) + 0x1b3;  // what another writer took

struct Old {
  Ids key;
  std::vector<std::pair<uint32_t, uint32_t>> next;
};

void put(std::string& out, const void* data, size_t n) { out.append(static_cast<const char*>(data), n); }
void put32(std::string& out, uint32_t value) { put(out, &value, 4); }

std::string old_file(const std::vector<Old>& entries, uint32_t order, uint64_t prime) {
  const uint32_t n_slots = std::bit_ceil(std::max<uint32_t>(16, 2 * static_cast<uint32_t>(entries.size())));
  std::vector<uint64_t> hashes(n_slots, 0);
  std::vector<uint32_t> offsets(n_slots, 0);
  std::string data;
  for (const Old& entry : entries) {
    const uint64_t hash = fnv1a(entry.key, prime);
    uint64_t at = hash % n_slots;
    while (hashes[at] != 0) at = (at + 1) % n_slots;
    hashes[at] = hash;
    offsets[at] = static_cast<uint32_t>(data.size());
    put32(data, static_cast<uint32_t>(entry.next.size()));
    for (const auto& [token, n] : entry.next) {
      put32(data, token);
      put32(data, n);
    }
  }
  std::string out;
  for (const uint32_t word : {0x454e4752u, 1u, order, n_slots, static_cast<uint32_t>(entries.size())}) put32(out, word);
  for (uint32_t i = 0; i < n_slots; ++i) {
    put(out, &hashes[i], 8);
    put32(out, offsets[i]);
    put32(out, 0);
  }
  return out + data;
}

TEST(LegacyHash, KnownVectors) {
  // Of the key [1, 2, 3], computed outside of this project's code.
  EXPECT_EQ(fnv1a({1, 2, 3}, kShortPrime), 0xd53c2cd781eb0395ULL);
  EXPECT_EQ(fnv1a({1, 2, 3}, kStandard), 0xfd1f0f4381eb0395ULL);
}

TEST_F(TablesTest, VersionOneHitsWithEitherPrime) {
  std::vector<Old> entries;
  for (int32_t i = 0; i < 100; ++i) {
    entries.push_back({{i, i + 1, i * 7}, {{static_cast<uint32_t>(i), 5}, {static_cast<uint32_t>(i + 500), 2}}});
  }
  for (const uint64_t prime : {kStandard, kShortPrime}) {
    write(path("old.engr"), old_file(entries, 3, prime));
    const auto table = open(path("old.engr"));
    ASSERT_TRUE(table);
    EXPECT_EQ(table->version(), 1);
    EXPECT_EQ(table->header().n_keys, 100u);
    for (const Old& entry : entries) {
      EXPECT_EQ(count(*table, entry.key, static_cast<int32_t>(entry.next[0].first)), 5);
      EXPECT_EQ(count(*table, entry.key, static_cast<int32_t>(entry.next[1].first)), 2);
    }
    Hit hit;
    EXPECT_FALSE(table->find(Table::context_of(Ids{1, 2, 3}), 3, hit));
    EXPECT_FALSE(table->find(Table::context_of(entries[0].key), 2, hit));
    EXPECT_FALSE(add_lessons(path("old.engr"), kTestShape, {lesson("x", {{1, 2, 3}})}, 0));
  }
}

TEST_F(TablesTest, VersionOneDamageIsRefused) {
  const std::string good = old_file({{{1, 2}, {{3, 1}}}}, 2, kStandard);
  const auto refused = [&](const std::string& file) {
    write(path("old.engr"), file);
    return !Table::open(path("old.engr"), kTestVocabulary, 0);
  };
  EXPECT_FALSE(refused(good));
  for (size_t n = 0; n < good.size(); ++n) EXPECT_TRUE(refused(good.substr(0, n))) << n;
  const auto with = [&](size_t at, uint32_t value) {
    std::string file = good;
    std::memcpy(file.data() + at, &value, 4);
    return file;
  };
  EXPECT_TRUE(refused(with(8, 0)));                   // order
  EXPECT_TRUE(refused(with(8, 9)));                   //
  EXPECT_TRUE(refused(with(12, 0)));                  // slots
  EXPECT_TRUE(refused(with(12, 12)));                 //
  EXPECT_TRUE(refused(with(12, 0x80000000u)));        //
  EXPECT_TRUE(refused(with(16, 2)));                  // keys
  EXPECT_TRUE(refused(with(good.size() - 12, 2)));    // continuations
  EXPECT_TRUE(refused(with(good.size() - 8, 1000)));  // a token that does not exist
}

}  // namespace
}  // namespace chimere::engram

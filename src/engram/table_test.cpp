// table_test.cpp  What is written is found again and nothing else is, against a plain map; damage is refused.
#include <map>

#include "base/hash.h"
#include "engram/cuckoo_filter.h"
#include "engram/tables_for_test.h"

namespace chimere::engram {
namespace {

TEST(CuckooFilter, ContainsWhatWasPutInAndLittleElse) {
  for (const size_t n : {0, 1, 3, 1000, 50000}) {
    std::vector<uint64_t> hashes;
    for (size_t i = 0; i < n; ++i) hashes.push_back(stored_hash(i));
    const CuckooFilter::Built built = CuckooFilter::build(hashes);
    const std::vector<uint64_t>& words = built.buckets;
    const CuckooFilter filter(words);
    ASSERT_EQ(built.lodgers.size(), filter.n_lanes());
    for (size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(filter.may_contain(hashes[i]));
      bool leads_to_it = false;
      for (CuckooFilter::Matches lanes = filter.matches(hashes[i]); !lanes.empty();) {
        leads_to_it |= built.lodgers[lanes.take()] == i;
      }
      ASSERT_TRUE(leads_to_it) << i;
    }
    size_t wrong = 0;
    for (size_t i = 0; i < 100000; ++i) wrong += filter.may_contain(stored_hash(n + 1000 + i));
    EXPECT_LE(wrong, 100u) << n;  // 0.1 %; expected is 0.012 %
    EXPECT_LE(words.size() * 8, n * 9 / 4 + 64);
  }
}

TEST(CuckooFilter, HoldsTheSameHashManyTimes) {
  // Eight places at most for one fingerprint: copies beyond make it grow, not fail.
  const std::vector<uint64_t> hashes(6, stored_hash(7));
  const CuckooFilter::Built built = CuckooFilter::build(hashes);
  EXPECT_TRUE(CuckooFilter(built.buckets).may_contain(stored_hash(7)));
}

TEST_F(TablesTest, AgreesWithANaiveTwin) {
  std::mt19937 random(1);
  std::vector<Ids> texts(5);
  for (size_t t = 0; t < texts.size(); ++t) {
    for (size_t i = 0; i < 40 * t; ++i) texts[t].push_back(static_cast<int32_t>(random() % 4));
  }
  texts.push_back({999});
  ASSERT_TRUE(
      build_table(path("a.engram"), kTestShape,
                  {lesson("one", {texts[0], texts[1], texts[2]}), lesson("two", {texts[3], texts[4], texts[5]})}));
  std::map<Ids, std::map<int32_t, int>> twin;
  for (const Ids& text : texts) {
    for (size_t end = 2; end < text.size(); ++end) {
      for (size_t order = 2; order <= 8 && order <= end; ++order) {
        ++twin[Ids(text.begin() + end - order, text.begin() + end)][text[end]];
      }
    }
  }
  const auto table = open(path("a.engram"));
  ASSERT_TRUE(table);
  EXPECT_EQ(table->header().n_keys, twin.size());
  Hit hit;
  for (const auto& [key, next] : twin) {
    ASSERT_TRUE(table->find(Table::context_of(key), static_cast<int>(key.size()), hit));
    int total = 0;
    for (const auto& [token, count] : next) {
      EXPECT_EQ(TablesTest::count(*table, key, token), static_cast<float>(count));
      total += count;
    }
    EXPECT_EQ(hit.total, total);
    EXPECT_EQ(hit.distinct, static_cast<double>(next.size()));
    for (size_t i = 1; i < hit.next.size(); ++i) EXPECT_GE(hit.next[i - 1].count, hit.next[i].count);
  }
  for (int i = 0; i < 2000; ++i) {
    Ids key(2 + random() % 7);
    for (int32_t& token : key) token = static_cast<int32_t>(random() % 5);
    EXPECT_EQ(table->find(Table::context_of(key), static_cast<int>(key.size()), hit), twin.count(key) > 0);
  }
  EXPECT_FALSE(table->find(Table::context_of({}), 2, hit));
  EXPECT_FALSE(table->find(Table::context_of(Ids{1}), 2, hit));
  EXPECT_FALSE(table->find(Table::context_of(Ids{1, 2}), 9, hit));
}

// Two keys of the same hash: a slot that leads to another key is not a hit.
TEST_F(TablesTest, VerifiesTheKeyBehindTheHash) {
  ASSERT_TRUE(build_table(path("a.engram"), {kTestVocabulary, 2, 2}, {lesson("s", {{1, 2, 3}})}));
  const auto before = open(path("a.engram"));
  const FileHeader header = before->header();
  std::string file = bytes(path("a.engram"));
  const uint32_t other = 7;
  file.replace(header.records_offset + 8, 4, reinterpret_cast<const char*>(&other), 4);  // the newest token of the key
  FileHeader changed = header;
  const auto section = [&](uint64_t offset, uint64_t size) {
    return std::as_bytes(std::span(file)).subspan(offset, size);
  };
  changed.body_checksum = hash64(section(header.filter_offset, header.n_buckets * 8));
  changed.body_checksum = hash64(section(header.slots_offset, header.n_slots * 4), changed.body_checksum);
  changed.body_checksum = hash64(section(header.records_offset, header.records_bytes), changed.body_checksum);
  changed.body_checksum = hash64(section(header.sources_offset, header.sources_bytes), changed.body_checksum);
  changed.header_checksum = hash64(std::as_bytes(std::span(&changed, 1)).first(offsetof(FileHeader, header_checksum)));
  file.replace(0, sizeof(changed), reinterpret_cast<const char*>(&changed), sizeof(changed));
  write(path("b.engram"), file);
  const auto after = open(path("b.engram"));
  ASSERT_TRUE(after);
  EXPECT_EQ(count(*before, {1, 2}, 3), 1);
  EXPECT_EQ(count(*after, {1, 2}, 3), 0);
}

TEST_F(TablesTest, RefusesDamageAndForeignTables) {
  ASSERT_TRUE(build_table(path("a.engram"), kTestShape, {lesson("s", {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}})}));
  const std::string whole = bytes(path("a.engram"));
  const FileHeader header = open(path("a.engram"))->header();
  for (size_t n = 0; n < whole.size(); n += 37) {
    write(path("cut.engram"), whole.substr(0, n));
    EXPECT_FALSE(Table::open(path("cut.engram"), kTestVocabulary, 0)) << n;
  }
  const auto is_padding = [&](size_t at) {
    return (at >= sizeof(FileHeader) && at < header.filter_offset) ||
           (at >= header.filter_offset + header.n_buckets * 8 && at < header.slots_offset) ||
           (at >= header.slots_offset + header.n_slots * 4 && at < header.records_offset) ||
           (at >= header.records_offset + header.records_bytes && at < header.sources_offset);
  };
  for (size_t at = 0; at < whole.size(); at += 5) {
    if (is_padding(at)) continue;
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 16);
    write(path("flipped.engram"), flipped);
    EXPECT_FALSE(Table::open(path("flipped.engram"), kTestVocabulary, 0)) << at;
  }
  auto foreign = Table::open(path("a.engram"), {0x9999, 1000}, 0);
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message.find("another vocabulary"), std::string::npos);
  EXPECT_FALSE(Table::open(path("missing.engram"), kTestVocabulary, 0));
  write(path("text.engram"), "this is no table, but long enough to be one");
  EXPECT_NE(Table::open(path("text.engram"), kTestVocabulary, 0).error().message.find("not an Engram table"),
            std::string::npos);
}

TEST_F(TablesTest, AnEmptyTableKnowsNothing) {
  ASSERT_TRUE(build_table(path("a.engram"), kTestShape, {}));
  const auto table = open(path("a.engram"));
  ASSERT_TRUE(table);
  Hit hit;
  EXPECT_FALSE(table->find(Table::context_of(Ids{1, 2, 3}), 2, hit));
}

}  // namespace
}  // namespace chimere::engram

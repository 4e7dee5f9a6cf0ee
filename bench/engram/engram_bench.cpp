// engram_bench.cpp  What a lookup costs, from 10^3 to 10^8 n-grams, and what memory costs a generated token.
//
//   engram_bench FOLDER [LARGEST]        tables are written to FOLDER and removed again; 10^8 takes 6 GB of it
//
// Every figure is the median over batches of lookups of keys in random order, hashing not included unless it says so.
// A batch is short, so that a busy machine spoils some batches and not the median.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "engram/cuckoo_filter.h"
#include "engram/table.h"
#include "engram/table_memory.h"
#include "engram/table_writer.h"

namespace {

using namespace chimere;
using namespace chimere::engram;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kVocab = 248320;
constexpr int kOrder = 4;
constexpr size_t kBatch = 64, kBatches = 4001;
constexpr Vocabulary kVocabulary{1, kVocab};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Key number i: different for every i below kVocab^2, ascending with i in its first two tokens.
std::array<uint32_t, kOrder> key_of(uint64_t i) {
  const auto noise = static_cast<uint32_t>(hash_mix(i) % kVocab);
  return {static_cast<uint32_t>(i / kVocab), static_cast<uint32_t>(i % kVocab), noise, (noise * 7 + 1) % kVocab};
}

class ManyRecords : public RecordStream {
 public:
  explicit ManyRecords(uint64_t n) : n_(n) {}
  Result<bool> next(Record& record) override {
    if (i_ == n_) return false;
    key_ = key_of(i_);
    entry_ = Entry{static_cast<uint32_t>(i_ % kVocab), 3, 0}.pack();
    ++i_;
    record = {key_, 3, {&entry_, 1}};
    return true;
  }

 private:
  uint64_t n_, i_ = 0;
  std::array<uint32_t, kOrder> key_{};
  uint64_t entry_ = 0;
};

Table::Context context(uint64_t i) {
  const auto key = key_of(i);
  std::array<int32_t, kOrder> tokens;
  for (int t = 0; t < kOrder; ++t) tokens[t] = static_cast<int32_t>(key[kOrder - 1 - t]);
  return Table::context_of(tokens);
}

// Nanoseconds of one call of `work(i)`, i being the index of a prepared item.
template <class Prepare, class Work>
double median_ns(Prepare prepare, Work work) {
  std::vector<double> times;
  for (size_t b = 0; b < kBatches; ++b) {
    for (size_t i = 0; i < kBatch; ++i) prepare(b, i);
    const auto start = Clock::now();
    for (size_t i = 0; i < kBatch; ++i) work(i);
    times.push_back(seconds_since(start) * 1e9 / kBatch);
  }
  std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
  return times[kBatches / 2];
}

int measure(const std::string& folder, uint64_t n) {
  const std::string path = folder + "/bench-" + std::to_string(n) + ".engram";
  ManyRecords records(n);
  auto start = Clock::now();
  if (Status s = write_table(path, {kVocabulary, kOrder, kOrder}, records, {{"bench", kNeverAges, 5, n}}); !s) {
    std::fprintf(stderr, "%s\n", s.error().message.c_str());
    return 1;
  }
  const double build_s = seconds_since(start);
  start = Clock::now();
  auto opened = Table::open(path, kVocabulary, today());
  const double load_s = seconds_since(start);
  if (!opened) return 1;
  const Table& table = **opened;

  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < n; ++i) hashes.push_back(context(i).hashes[kOrder]);
  const std::vector<uint64_t> words = CuckooFilter::build(hashes).buckets;
  hashes = {};
  const CuckooFilter filter(words);
  uint64_t false_positives = 0, found = 0, asked = 0;
  std::vector<uint64_t> absent(kBatch);
  const double negative =
      median_ns([&](size_t b, size_t i) { absent[i] = stored_hash((uint64_t{1} << 60) + b * kBatch + i); },
                [&](size_t i) {
                  false_positives += filter.may_contain(absent[i]);
                  ++asked;
                });
  std::vector<Table::Context> keys(kBatch);
  Hit hit;
  const auto known = [&](size_t b, size_t i) { keys[i] = context(hash_mix(b * kBatch + i) % n); };
  const double hit_ns = median_ns(known, [&](size_t i) { found += table.find_record(keys[i], kOrder).has_value(); });
  // A key that is not known before the last answer is: no two lookups wait for memory together.
  uint64_t last = 0;
  const double alone_ns = median_ns(known, [&](size_t i) {
    keys[i].hashes[kOrder] ^= last;
    const std::optional<Record> record = table.find_record(keys[i], kOrder);
    last = record && record->total == 3 ? 0 : 1;
    found += record.has_value();
  });
  const double next_ns = median_ns(known, [&](size_t i) { found += table.find(keys[i], kOrder, hit); });
  TableMemory memory({{*opened, 1}}, {});
  std::vector<std::vector<int32_t>> texts(kBatch);
  const double token_ns = median_ns(
      [&](size_t b, size_t i) {
        const auto key = key_of(hash_mix(b * kBatch + i) % n);
        texts[i] = {1, 2, 3, 4};
        for (int t = kOrder; t-- > 0;) texts[i].push_back(static_cast<int32_t>(key[t]));
      },
      [&](size_t i) { found += memory.expect(texts[i], false).size(); });
  if (found == 0) return 1;
  std::printf("| %llu | %.1f | %.3f %% | %.0f | %.0f | %.0f | %.0f | %.0f | %.3f | %.1f |\n",
              static_cast<unsigned long long>(n), negative,
              100.0 * static_cast<double>(false_positives) / static_cast<double>(asked), hit_ns, alone_ns, next_ns,
              token_ns, static_cast<double>(std::filesystem::file_size(path)) / 1e6, load_s, build_s);
  std::fflush(stdout);
  std::filesystem::remove(path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: engram_bench FOLDER [LARGEST]\n");
    return 2;
  }
  const uint64_t largest = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000'000;
  std::printf(
      "| n-grams | filter says no, ns | false positives | hit, ns | hit after hit, ns | hit with counts, ns "
      "| expect() a token, ns | MB | load, s | build, s |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (uint64_t n = 1000; n <= largest; n *= 10) {
    if (const int failed = measure(argv[1], n)) return failed;
  }
  return 0;
}

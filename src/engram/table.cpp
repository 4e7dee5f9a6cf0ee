#include "engram/table.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/hash.h"
#include "engram/ngram_hash.h"

namespace chimere::engram {
namespace {

template <class T>
std::span<const T> cast(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

Error corrupt(const std::string& path, const std::string& what) {
  return Error{Code::corrupt, path + ": " + what + "; the table is damaged, build it anew"};
}

std::string hex(uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[i] = kDigits[value & 15];
  return text;
}

uint64_t order_of(uint64_t record_head) { return record_head & 15; }
uint64_t entries_of(uint64_t record_head) { return static_cast<uint32_t>(record_head) >> 4; }
uint32_t total_of(uint64_t record_head) { return static_cast<uint32_t>(record_head >> 32); }

// Two tokens at a time; an odd one lies in the lower half of the last word.
inline bool has_key(const uint64_t* key_words, const uint32_t* key, size_t order) {
  for (size_t i = 0; i < order / 2; ++i) {
    uint64_t pair;
    std::memcpy(&pair, key + 2 * i, sizeof(pair));
    if (key_words[i] != pair) return false;
  }
  return order % 2 == 0 || static_cast<uint32_t>(key_words[order / 2]) == key[order - 1];
}

// Continuations with the age of their sources, one a token, most frequent first.
void count_next(std::span<const uint64_t> entries, std::span<const float> source_weights, Hit& hit) {
  hit.next.clear();
  for (const uint64_t word : entries) {
    const Entry entry = Entry::unpack(word);
    const float weight = source_weights[std::min<size_t>(entry.source, source_weights.size() - 1)];
    const float count = static_cast<float>(entry.count) * weight;
    if (count > 0) hit.next.push_back({static_cast<int32_t>(entry.token), count});
  }
  if (source_weights.size() <= 2) return;  // of one source: in order already
  std::sort(hit.next.begin(), hit.next.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
  size_t n = 0;
  for (const Hit::Next& next : hit.next) {
    if (n > 0 && hit.next[n - 1].token == next.token) {
      hit.next[n - 1].count += next.count;
    } else {
      hit.next[n++] = next;
    }
  }
  hit.next.resize(n);
  std::stable_sort(hit.next.begin(), hit.next.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
}

}  // namespace

uint32_t today() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::hours>(now).count() / 24);
}

Result<std::shared_ptr<const Table>> Table::open(const std::string& path, const Vocabulary& vocabulary,
                                                 uint32_t today) {
  auto table = std::make_shared<Table>();
  TRY_ASSIGN(table->file_, MappedFile::open(path));
  table->bytes_ = table->file_.bytes();
  TRY_ASSIGN(std::shared_ptr<const Table> opened, read(table, path, vocabulary, today));
  table->file_.advise(0, table->bytes_.size(), Access::random);
  return Result<std::shared_ptr<const Table>>{std::move(opened)};
}

Result<std::shared_ptr<const Table>> Table::from_image(std::vector<uint64_t> image, const std::string& name,
                                                       const Vocabulary& vocabulary, uint32_t today) {
  auto table = std::make_shared<Table>();
  table->image_ = std::move(image);
  table->bytes_ = std::as_bytes(std::span(table->image_));
  return read(std::move(table), name, vocabulary, today);
}

Result<std::shared_ptr<const Table>> Table::read(std::shared_ptr<Table> table, const std::string& path,
                                                 const Vocabulary& vocabulary, uint32_t today) {
  const std::span<const std::byte> bytes = table->bytes_;
  uint32_t start[2] = {0, 0};
  if (bytes.size() >= sizeof(start)) std::memcpy(start, bytes.data(), sizeof(start));
  if (start[0] != kMagic) return Error{Code::invalid_argument, path + ": is not an Engram table"};
  if (start[1] == 1) {
    TRY_ASSIGN(table->legacy_, LegacyTable::read(path, bytes, vocabulary.n_vocab));
    table->min_order_ = table->max_order_ = table->legacy_->order();
    table->header_.n_keys = table->legacy_->n_keys();
    table->header_.min_order = table->header_.max_order = static_cast<uint32_t>(table->min_order_);
    return Result<std::shared_ptr<const Table>>{std::move(table)};
  }
  TRY(table->read_header(path));
  const FileHeader& h = table->header_;
  if (Vocabulary{h.tokenizer, h.n_vocab} != vocabulary) {
    return Error{Code::invalid_argument, path + ": was made for another vocabulary: expected " +
                                             hex(vocabulary.fingerprint) + " of " + std::to_string(vocabulary.n_vocab) +
                                             " tokens, found " + hex(h.tokenizer) + " of " + std::to_string(h.n_vocab)};
  }
  TRY(table->read_sources(path));
  for (const Source& source : table->sources_) table->source_weights_.push_back(weight_at_age(source.day, today));
  table->source_weights_.push_back(0.0f);
  return Result<std::shared_ptr<const Table>>{std::move(table)};
}

std::span<const std::byte> Table::section(uint64_t offset, uint64_t bytes) const {
  return bytes_.subspan(offset, bytes);
}

Status Table::read_header(const std::string& path) {
  const std::span<const std::byte> bytes = bytes_;
  FileHeader& h = header_;
  if (bytes.size() < sizeof(FileHeader)) {
    return corrupt(path, "expected a header of " + std::to_string(sizeof(FileHeader)) + " bytes, found " +
                             std::to_string(bytes.size()));
  }
  std::memcpy(&h, bytes.data(), sizeof(h));
  if (h.version != kVersion || h.hash_scheme != kHashScheme) {
    return Error{Code::unsupported, path + ": expected version 1 or 2 and hash scheme 2, found version " +
                                        std::to_string(h.version) + " and scheme " + std::to_string(h.hash_scheme)};
  }
  if (h.header_bytes != sizeof(FileHeader) ||
      h.header_checksum != hash64(bytes.first(offsetof(FileHeader, header_checksum)))) {
    return corrupt(path, "the checksum of the header does not fit");
  }
  if (h.file_bytes != bytes.size()) {
    return corrupt(path, "expected " + std::to_string(h.file_bytes) + " bytes, found " + std::to_string(bytes.size()));
  }
  const struct {
    const char* name;
    uint64_t offset, count, unit;
  } sections[] = {{"filter", h.filter_offset, h.n_buckets, 8},
                  {"slots", h.slots_offset, h.n_slots, sizeof(uint32_t)},
                  {"records", h.records_offset, h.records_bytes / 8, 8},
                  {"sources", h.sources_offset, h.sources_bytes / 8, 8}};
  uint64_t checksum = 0;
  for (const auto& s : sections) {
    const bool inside = s.offset % kSectionAlign == 0 && s.offset >= sizeof(FileHeader) && s.offset <= bytes.size() &&
                        s.count <= (bytes.size() - s.offset) / s.unit;
    if (!inside) return corrupt(path, std::string("its ") + s.name + " lie outside of the file");
    checksum = hash64(section(s.offset, s.count * s.unit), checksum);
  }
  if (checksum != h.body_checksum) return corrupt(path, "the checksum of its content does not fit");
  const bool orders = h.min_order >= 1 && h.min_order <= h.max_order && h.max_order <= kMaxOrder;
  const bool lanes = h.n_buckets > 0 && h.n_slots == h.n_buckets * CuckooFilter::kLanes;
  if (!orders || !lanes || h.n_vocab > Entry::kMaxToken) {
    return corrupt(path, "its sizes do not fit together");
  }
  min_order_ = static_cast<int>(h.min_order);
  max_order_ = static_cast<int>(h.max_order);
  filter_ = CuckooFilter(cast<uint64_t>(section(h.filter_offset, h.n_buckets * 8)));
  slots_ = cast<uint32_t>(section(h.slots_offset, h.n_slots * sizeof(uint32_t)));
  records_ = cast<uint64_t>(section(h.records_offset, h.records_bytes));
  return Ok{};
}

Status Table::read_sources(const std::string& path) {
  std::span<const std::byte> rest = section(header_.sources_offset, header_.sources_bytes);
  for (uint32_t i = 0; i < header_.n_sources; ++i) {
    SourceHead head;
    if (rest.size() < sizeof(head)) return corrupt(path, "source " + std::to_string(i) + " is cut off");
    std::memcpy(&head, rest.data(), sizeof(head));
    rest = rest.subspan(sizeof(head));
    if (head.id_bytes > rest.size()) return corrupt(path, "source " + std::to_string(i) + " is cut off");
    sources_.push_back(
        {std::string(reinterpret_cast<const char*>(rest.data()), head.id_bytes), head.day, head.score, head.n_tokens});
    rest = rest.subspan(std::min<size_t>(rest.size(), (head.id_bytes + 7) / 8 * 8));
  }
  return Ok{};
}

Table::Context Table::context_of(std::span<const int32_t> tokens) {
  Context context;
  context.length = static_cast<int>(std::min<size_t>(tokens.size(), kMaxOrder));
  uint64_t hash = kFnvBasis;
  for (int i = 0; i < context.length; ++i) {
    context.newest_first[i] = static_cast<uint32_t>(tokens[tokens.size() - 1 - i]);
    hash = fnv_add(hash, context.newest_first[i]);
    context.hashes[i + 1] = stored_hash(hash);
  }
  return context;
}

std::optional<Record> Table::record_at(uint64_t word) const {
  if (word >= records_.size()) return std::nullopt;
  const uint64_t head = records_[word], order = order_of(head), n_entries = entries_of(head);
  const uint64_t head_words = record_head_bytes(static_cast<int>(order)) / 8;
  if (order < 1 || order > kMaxOrder || head_words + n_entries > records_.size() - word) return std::nullopt;
  const auto* key = reinterpret_cast<const uint32_t*>(&records_[word]) + 2;
  return Record{{key, order}, total_of(head), records_.subspan(word + head_words, n_entries)};
}

// A lookup waits for memory, and the next one can wait beside it only as far as a processor looks ahead, a few hundred
// instructions: that is why this is short and calls nothing.
std::optional<Record> Table::find_record(const Context& context, int order) const {
  if (order < min_order_ || order > max_order_ || order > context.length) return std::nullopt;
  const uint64_t head_words = record_head_bytes(order) / 8;
  const auto size = static_cast<size_t>(order);
  for (CuckooFilter::Matches lanes = matches(context.hashes[size]); !lanes.empty();) {
    const uint64_t word = slots_[lanes.take()];
    if (word >= records_.size()) continue;
    const uint64_t head = records_[word];
    if (order_of(head) != size || head_words + entries_of(head) > records_.size() - word) continue;
    if (!has_key(&records_[word] + 1, context.newest_first.data(), size)) continue;
    const auto* key = reinterpret_cast<const uint32_t*>(&records_[word]) + 2;
    return Record{{key, size}, total_of(head), {&records_[word] + head_words, entries_of(head)}};
  }
  return std::nullopt;
}

void Table::prefetch(const Context& context) const {
  if (legacy_) return;
  const int last = std::min(max_order_, context.length);
  std::array<CuckooFilter::Matches, kMaxOrder + 1> lanes;
  for (int order = min_order_; order <= last; ++order) lanes[order] = matches(context.hashes[order]);
  for (int order = min_order_; order <= last; ++order) {
    if (lanes[order].empty()) continue;
    const uint64_t word = slots_[lanes[order].take()];
    if (word < records_.size()) __builtin_prefetch(&records_[word]);
  }
}

bool Table::find(const Context& context, int order, Hit& hit) const {
  if (legacy_) {
    if (order != legacy_->order() || context.length < order) return false;
    hit.next.clear();
    hit.total = 0;
    for (const LegacyTable::Next& next : legacy_->find(std::span(context.newest_first).first(order))) {
      if (hit.next.size() < kMaxNext)
        hit.next.push_back({static_cast<int32_t>(next.token), static_cast<float>(next.count)});
      hit.total += next.count;
    }
  } else {
    const std::optional<Record> record = find_record(context, order);
    if (!record) return false;
    const std::span<const uint64_t> read = record->entries.first(std::min(record->entries.size(), kMaxNext));
    count_next(read, source_weights_, hit);
    // What lies beyond the continuations that are read counts in full: it can only make us less sure.
    double read_counts = 0;
    for (const uint64_t word : read) read_counts += Entry::unpack(word).count;
    hit.total = std::max(0.0, record->total - read_counts);
    for (const Hit::Next& next : hit.next) hit.total += next.count;
  }
  hit.order = order;
  hit.distinct = static_cast<double>(hit.next.size());
  return !hit.next.empty();
}

class TableRecords : public RecordStream {
 public:
  explicit TableRecords(const Table& table) : table_(table) {}

  Result<bool> next(Record& record) override {
    if (at_ == table_.records_.size()) return false;
    const auto found = table_.record_at(at_);
    if (!found) return Error{Code::corrupt, "table: the record at word " + std::to_string(at_) + " does not fit"};
    record = *found;
    at_ += record_head_bytes(record.order()) / 8 + record.entries.size();
    return true;
  }

 private:
  const Table& table_;
  uint64_t at_ = 0;
};

std::unique_ptr<RecordStream> Table::records() const { return std::make_unique<TableRecords>(*this); }

}  // namespace chimere::engram

#include "engram/table.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/hash.h"
#include "engram/ngram_hash.h"

namespace chimere::engram {
namespace {

// At half full a walk of more than a hundred slots does not happen, not even among 10^8 keys.
constexpr uint64_t kLongestProbe = 4096;

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
  const std::span<const std::byte> bytes = table->file_.bytes();
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
  table->file_.advise(0, bytes.size(), Access::random);
  return Result<std::shared_ptr<const Table>>{std::move(table)};
}

std::span<const std::byte> Table::section(uint64_t offset, uint64_t bytes) const {
  return file_.bytes().subspan(offset, bytes);
}

Status Table::read_header(const std::string& path) {
  const std::span<const std::byte> bytes = file_.bytes();
  FileHeader& h = header_;
  if (bytes.size() < sizeof(FileHeader)) {
    return corrupt(path, "expected a header of " + std::to_string(sizeof(FileHeader)) + " bytes, found " +
                             std::to_string(bytes.size()));
  }
  std::memcpy(&h, bytes.data(), sizeof(h));
  if (h.version != kVersion || h.hash_scheme != kHashNewestFirst) {
    return Error{Code::unsupported, path + ": expected version 1 or 2 and hash scheme 1, found version " +
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
                  {"slots", h.slots_offset, h.n_slots, sizeof(Slot)},
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
  if (!orders || h.n_slots == 0 || h.n_keys > h.n_slots || h.longest_probe > kLongestProbe ||
      h.n_vocab > Entry::kMaxToken) {
    return corrupt(path, "its sizes do not fit together");
  }
  min_order_ = static_cast<int>(h.min_order);
  max_order_ = static_cast<int>(h.max_order);
  filter_ = CuckooFilter(cast<uint64_t>(section(h.filter_offset, h.n_buckets * 8)));
  slots_ = cast<Slot>(section(h.slots_offset, h.n_slots * sizeof(Slot)));
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

std::optional<Record> Table::record_at(uint64_t word, int order) const {
  const uint64_t head = record_head_bytes(order) / 8;
  if (word > records_.size() || head > records_.size() - word) return std::nullopt;
  uint32_t counts[2];
  std::memcpy(counts, &records_[word], sizeof(counts));
  if (counts[0] > records_.size() - word - head) return std::nullopt;
  const auto* key = reinterpret_cast<const uint32_t*>(&records_[word]) + 2;
  return Record{{key, static_cast<size_t>(order)}, counts[1], records_.subspan(word + head, counts[0])};
}

std::optional<Record> Table::find_record(const Context& context, int order) const {
  if (order < min_order_ || order > max_order_ || order > context.length) return std::nullopt;
  const uint64_t hash = context.hashes[order];
  uint64_t at = place_of(hash, slots_.size());
  __builtin_prefetch(&slots_[at]);  // on its way while the filter is asked: a hit waits for one miss less
  if (!filter_.may_contain(hash)) return std::nullopt;
  const std::span<const uint32_t> key(context.newest_first.data(), static_cast<size_t>(order));
  for (uint64_t step = 0; step < header_.longest_probe && slots_[at].hash != 0; ++step) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && static_cast<int>(slot.where >> 56) == order) {
      const std::optional<Record> record = record_at(slot.where & ((uint64_t{1} << 56) - 1), order);
      if (record && std::equal(key.begin(), key.end(), record->key.begin())) return record;
    }
    at = at + 1 == slots_.size() ? 0 : at + 1;
  }
  return std::nullopt;
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

  // A record does not say its order, but its slot does; so the places of all records are taken from the slots first.
  Result<bool> next(Record& record) override {
    if (!started_) {
      started_ = true;
      for (const Slot& slot : table_.slots_) {
        if (slot.hash != 0) places_.push_back(slot.where);
      }
      std::sort(places_.begin(), places_.end(), [](uint64_t a, uint64_t b) { return (a << 8) < (b << 8); });
    }
    if (at_ == places_.size()) return false;
    const auto order = static_cast<int>(places_[at_] >> 56);
    const auto found = order >= 1 && order <= kMaxOrder
                           ? table_.record_at(places_[at_] & ((uint64_t{1} << 56) - 1), order)
                           : std::nullopt;
    if (!found) return Error{Code::corrupt, "table: record " + std::to_string(at_) + " lies outside of the file"};
    ++at_;
    record = *found;
    return true;
  }

 private:
  const Table& table_;
  bool started_ = false;
  std::vector<uint64_t> places_;
  size_t at_ = 0;
};

std::unique_ptr<RecordStream> Table::records() const { return std::make_unique<TableRecords>(*this); }

}  // namespace chimere::engram

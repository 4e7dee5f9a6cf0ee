#include "engram/table_writer.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/hash.h"
#include "base/platform/atomic_file.h"
#include "engram/cuckoo_filter.h"
#include "engram/ngram_hash.h"
#include "engram/table_format.h"

namespace chimere::engram {
namespace {

struct Sections {
  std::vector<uint64_t> filter;
  std::vector<uint32_t> slots;
  std::vector<uint64_t> records;
  std::vector<uint64_t> sources;
};

uint64_t padded(uint64_t bytes, uint64_t align) { return (bytes + align - 1) / align * align; }

// Bytes behind the last word: rounded up to whole words, the rest zero.
void append(std::vector<uint64_t>& words, const void* data, size_t bytes) {
  if (bytes == 0) return;
  const size_t at = words.size();
  words.resize(at + padded(bytes, 8) / 8, 0);
  std::memcpy(words.data() + at, data, bytes);
}

uint64_t hash_of(std::span<const uint32_t> key) {
  uint64_t hash = kFnvBasis;
  for (const uint32_t token : key) hash = fnv_add(hash, token);
  return stored_hash(hash);
}

Status check_record(const Record& record, const TableShape& shape) {
  const bool fits = record.order() >= shape.min_order && record.order() <= shape.max_order;
  const auto inside = [&](uint32_t token) { return token < shape.vocabulary.n_vocab; };
  const bool known = std::all_of(record.key.begin(), record.key.end(), inside) &&
                     std::all_of(record.entries.begin(), record.entries.end(),
                                 [&](uint64_t word) { return inside(Entry::unpack(word).token); });
  if (fits && known && record.entries.size() <= kMaxEntries) return Ok{};
  return Error{Code::invalid_argument, "n-gram of order " + std::to_string(record.order()) + ": expected orders " +
                                           std::to_string(shape.min_order) + " to " + std::to_string(shape.max_order) +
                                           " and ids below " + std::to_string(shape.vocabulary.n_vocab)};
}

void pack_sources(std::vector<uint64_t>& words, const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    const SourceHead head{source.day, source.score, source.n_tokens, static_cast<uint32_t>(source.id.size()), 0};
    append(words, &head, sizeof(head));
    append(words, source.id.data(), source.id.size());
  }
}

using Sink = std::function<Status(std::span<const std::byte>)>;

// Completes the header and gives everything to `sink`, in the order of the file.
Status write_sections(FileHeader& header, const Sections& s, const Sink& sink) {
  const std::span<const std::byte> sections[] = {std::as_bytes(std::span(s.filter)), std::as_bytes(std::span(s.slots)),
                                                 std::as_bytes(std::span(s.records)),
                                                 std::as_bytes(std::span(s.sources))};
  uint64_t* const offsets[] = {&header.filter_offset, &header.slots_offset, &header.records_offset,
                               &header.sources_offset};
  uint64_t end = sizeof(FileHeader);
  header.body_checksum = 0;
  for (int i = 0; i < 4; ++i) {
    *offsets[i] = padded(end, kSectionAlign);
    end = *offsets[i] + sections[i].size();
    header.body_checksum = hash64(sections[i], header.body_checksum);
  }
  header.header_bytes = sizeof(FileHeader);
  header.file_bytes = end;
  const auto head = std::as_bytes(std::span(&header, 1));
  header.header_checksum = hash64(head.first(offsetof(FileHeader, header_checksum)));
  TRY(sink(head));
  uint64_t written = sizeof(FileHeader);
  constexpr std::byte kZeros[kSectionAlign] = {};
  for (int i = 0; i < 4; ++i) {
    TRY(sink(std::span(kZeros).first(*offsets[i] - written)));
    TRY(sink(sections[i]));
    written = *offsets[i] + sections[i].size();
  }
  return Ok{};
}

// All of a table but the places of its sections. `name`: for messages.
Status collect(const std::string& name, const TableShape& shape, RecordStream& records,
               const std::vector<Source>& sources, FileHeader& header, Sections& sections) {
  if (sources.size() > Entry::kMaxSource || shape.vocabulary.n_vocab > Entry::kMaxToken) {
    return Error{Code::exhausted, name + ": expected at most " + std::to_string(Entry::kMaxSource) +
                                      " sources, found " + std::to_string(sources.size())};
  }
  header.tokenizer = shape.vocabulary.fingerprint;
  header.n_vocab = shape.vocabulary.n_vocab;
  header.min_order = static_cast<uint32_t>(shape.min_order);
  header.max_order = static_cast<uint32_t>(shape.max_order);
  header.n_sources = static_cast<uint32_t>(sources.size());
  std::vector<uint64_t> hashes;
  std::vector<uint32_t> starts;
  Record record;
  while (true) {
    TRY_ASSIGN(const bool found, records.next(record));
    if (!found) break;
    TRY(check_record(record, shape));
    if (sections.records.size() + record.entries.size() + record_head_bytes(kMaxOrder) / 8 > kMaxRecordWords) {
      return Error{Code::exhausted, name + ": expected at most 34 GB of records, found more"};
    }
    hashes.push_back(hash_of(record.key));
    starts.push_back(static_cast<uint32_t>(sections.records.size()));
    const auto n_entries = static_cast<uint32_t>(record.entries.size());
    uint32_t head[2 + kMaxOrder] = {(n_entries << 4) | static_cast<uint32_t>(record.order()), record.total};
    std::copy(record.key.begin(), record.key.end(), head + 2);
    append(sections.records, head, 8 + 4 * record.key.size());
    sections.records.insert(sections.records.end(), record.entries.begin(), record.entries.end());
    header.n_entries += n_entries;
  }
  header.n_keys = hashes.size();
  CuckooFilter::Built built = CuckooFilter::build(hashes);
  sections.filter = std::move(built.buckets);
  sections.slots.assign(built.lodgers.size(), kNoRecord);
  for (size_t lane = 0; lane < built.lodgers.size(); ++lane) {
    if (built.lodgers[lane] != CuckooFilter::Built::kNobody) sections.slots[lane] = starts[built.lodgers[lane]];
  }
  pack_sources(sections.sources, sources);
  header.n_buckets = sections.filter.size();
  header.n_slots = sections.slots.size();
  header.records_bytes = sections.records.size() * 8;
  header.sources_bytes = sections.sources.size() * 8;
  return Ok{};
}

}  // namespace

Status write_table(const std::string& path, const TableShape& shape, RecordStream& records,
                   const std::vector<Source>& sources, Readers readers) {
  FileHeader header;
  Sections sections;
  TRY(collect(path, shape, records, sources, header, sections));
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, readers));
  TRY(write_sections(header, sections, [&](std::span<const std::byte> bytes) { return file.write(bytes); }));
  return file.commit();
}

Result<std::vector<uint64_t>> table_image(const TableShape& shape, RecordStream& records,
                                          const std::vector<Source>& sources) {
  FileHeader header;
  Sections sections;
  TRY(collect("table", shape, records, sources, header, sections));
  std::vector<uint64_t> image;
  TRY(write_sections(header, sections, [&](std::span<const std::byte> bytes) -> Status {
    append(image, bytes.data(), bytes.size());  // whole words, every part of it
    return Ok{};
  }));
  return Result<std::vector<uint64_t>>{std::move(image)};
}

}  // namespace chimere::engram

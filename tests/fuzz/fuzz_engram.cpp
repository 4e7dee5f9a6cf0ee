// fuzz_engram.cpp  Arbitrary bytes as a table of either version: opened or refused, and if opened then looked up,
// walked through and merged without reading a byte outside of it.
//
// Checksums would stop every input at the door, so the first byte says whether they are set right first.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "engram/edit.h"
#include "engram/longest_match.h"
#include "engram/table.h"
#include "engram/table_memory.h"

namespace {

namespace engram = chimere::engram;
using chimere::engram::FileHeader;

constexpr engram::Vocabulary kVocabulary{0, 1000};

void set_checksums(std::string& file) {
  FileHeader header;
  if (file.size() < sizeof(header)) return;
  std::memcpy(&header, file.data(), sizeof(header));
  header.header_bytes = sizeof(header);
  header.file_bytes = file.size();
  header.tokenizer = kVocabulary.fingerprint;
  header.n_vocab = kVocabulary.n_vocab;
  const auto bytes = std::as_bytes(std::span(file));
  header.body_checksum = 0;
  const uint64_t sections[][2] = {{header.filter_offset, header.n_buckets * 8},
                                  {header.slots_offset, header.n_slots * 4},
                                  {header.records_offset, header.records_bytes / 8 * 8},
                                  {header.sources_offset, header.sources_bytes / 8 * 8}};
  for (const auto& section : sections) {
    if (section[0] > file.size() || section[1] > file.size() - section[0]) return;
    header.body_checksum = chimere::hash64(bytes.subspan(section[0], section[1]), header.body_checksum);
  }
  header.header_checksum =
      chimere::hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(FileHeader, header_checksum)));
  std::memcpy(file.data(), &header, sizeof(header));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  static const std::filesystem::path folder = [] {
    auto path = std::filesystem::temp_directory_path() / ("fuzz_engram_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path);
    return path;
  }();
  std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] & 1) set_checksums(file);
  const std::string path = (folder / "table").string(), merged = (folder / "merged").string();
  std::ofstream(path, std::ios::binary) << file;
  auto opened = engram::Table::open(path, kVocabulary, 20000);
  if (!opened) return 0;
  const std::shared_ptr<const engram::Table> table = *opened;
  const std::shared_ptr<const engram::NgramSource> source = table;
  engram::TableMemory memory({{table, 1}}, {});
  for (int32_t start = 0; start < 16; ++start) {
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 9; ++i) tokens.push_back((start + i) % 20);
    for (const chimere::MemoryEntry& entry : memory.expect(tokens, false)) {
      if (entry.weight < 0 || entry.weight > 1) __builtin_trap();
    }
    engram::longest_match(std::span(&source, 1), tokens, {.min_order = 2});
  }
  if (engram::merge_tables(merged, {path}, kVocabulary) && !engram::Table::open(merged, kVocabulary, 20000)) {
    __builtin_trap();
  }
  return 0;
}

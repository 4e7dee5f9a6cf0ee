// snapshot_file.cpp  Snapshots as bytes.
//
//   magic "CHIMSNAP" | version u32 | length u32 | key u64 | page_bytes u64 | n_pages u64 | recurrent_bytes u64
//   pages | recurrent state | checksum u64 (hash64 of everything before it)
// Little-endian. Every size is implied by the layout and compared with it before anything is allocated.
#include <cstring>
#include <string>

#include "base/hash.h"
#include "cache/sequence.h"

namespace chimere {
namespace {

constexpr char kSnapshotMagic[8] = {'C', 'H', 'I', 'M', 'S', 'N', 'A', 'P'};
constexpr uint32_t kSnapshotVersion = 1;

struct SnapshotHeader {
  char magic[8];
  uint32_t version;
  uint32_t length;
  uint64_t key;
  uint64_t page_bytes;
  uint64_t n_pages;
  uint64_t recurrent_bytes;
};
static_assert(sizeof(SnapshotHeader) == 48);

Error refuse_snapshot(const std::string& what, uint64_t expected, uint64_t found) {
  return {Code::corrupt,
          "snapshot: " + what + ": expected " + std::to_string(expected) + ", found " + std::to_string(found)};
}

}  // namespace

Result<std::vector<std::byte>> serialize(const Snapshot& snapshot, Executable& executable, uint64_t key) {
  const StateLayout& layout = executable.layout();
  StateMemory& memory = executable.memory();
  SnapshotHeader h{};
  std::memcpy(h.magic, kSnapshotMagic, sizeof(kSnapshotMagic));
  h.version = kSnapshotVersion;
  h.length = static_cast<uint32_t>(snapshot.length);
  h.key = key;
  h.page_bytes = layout.page_bytes();
  h.n_pages = snapshot.pages.size();
  h.recurrent_bytes = layout.recurrent_floats() * sizeof(float);

  std::vector<std::byte> out(sizeof(SnapshotHeader) + h.n_pages * h.page_bytes + h.recurrent_bytes + sizeof(uint64_t));
  std::memcpy(out.data(), &h, sizeof(h));
  std::byte* to = out.data() + sizeof(h);
  for (const StateBlockPtr& page : snapshot.pages) {
    page->read(to);
    to += h.page_bytes;
  }
  if (snapshot.recurrent) memory.read(to, snapshot.recurrent->data(), h.recurrent_bytes);
  to += h.recurrent_bytes;
  const uint64_t checksum = hash64(std::span(out).first(out.size() - sizeof(uint64_t)));
  std::memcpy(to, &checksum, sizeof(checksum));
  return Result<std::vector<std::byte>>{std::move(out)};
}

Result<Snapshot> parse_snapshot(std::span<const std::byte> bytes, Executable& executable, uint64_t key) {
  const StateLayout& layout = executable.layout();
  StateMemory& memory = executable.memory();
  SnapshotHeader h;
  if (bytes.size() < sizeof(h))
    return refuse_snapshot("size in bytes is below that of the header", sizeof(h), bytes.size());
  std::memcpy(&h, bytes.data(), sizeof(h));
  if (std::memcmp(h.magic, kSnapshotMagic, sizeof(kSnapshotMagic)) != 0) {
    return Error{Code::corrupt, "snapshot: does not start with the magic 'CHIMSNAP'"};
  }
  if (h.version != kSnapshotVersion) return refuse_snapshot("version", kSnapshotVersion, h.version);
  if (h.key != key) return refuse_snapshot("key of model and cache format", key, h.key);
  if (h.page_bytes != layout.page_bytes()) return refuse_snapshot("bytes a page", layout.page_bytes(), h.page_bytes);
  const uint64_t recurrent_bytes = layout.recurrent_floats() * sizeof(float);
  if (h.recurrent_bytes != recurrent_bytes)
    return refuse_snapshot("recurrent bytes", recurrent_bytes, h.recurrent_bytes);
  const uint64_t n_pages = h.page_bytes == 0 ? 0 : (static_cast<uint64_t>(h.length) + kPageTokens - 1) / kPageTokens;
  if (h.length > (1u << 30) || h.n_pages != n_pages) return refuse_snapshot("pages", n_pages, h.n_pages);
  const uint64_t size = sizeof(h) + n_pages * h.page_bytes + recurrent_bytes + sizeof(uint64_t);
  if (bytes.size() != size) return refuse_snapshot("size in bytes", size, bytes.size());
  uint64_t checksum;
  std::memcpy(&checksum, bytes.data() + size - sizeof(checksum), sizeof(checksum));
  const uint64_t actual = hash64(bytes.first(size - sizeof(checksum)));
  if (checksum != actual) return refuse_snapshot("checksum", checksum, actual);

  Snapshot s;
  s.length = static_cast<int32_t>(h.length);
  const std::byte* from = bytes.data() + sizeof(h);
  for (uint64_t i = 0; i < n_pages; ++i, from += h.page_bytes) {
    TRY_ASSIGN(StateBlockPtr page, StateBlock::allocate(memory, h.page_bytes));
    memory.write(page->data(), from, h.page_bytes);
    s.pages.push_back(std::move(page));
  }
  if (recurrent_bytes > 0) {
    TRY_ASSIGN(s.recurrent, StateBlock::allocate(memory, recurrent_bytes));
    memory.write(s.recurrent->data(), from, recurrent_bytes);
  }
  return Result<Snapshot>{std::move(s)};
}

}  // namespace chimere

#include "retrieval/vector_shelf.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_set>

#include "retrieval/stored_vectors.h"

namespace chimere::retrieval {
namespace {

// A search asks for so many more; beyond that everything is read again, which is rare.
constexpr size_t kMaxGone = 1024;

struct VectorRows {
  int64_t id = 0;
  int64_t first_chunk = 0;
  size_t chunks = 0;
};

Result<std::vector<VectorRows>> vector_rows(const Database& database, int64_t collection, int64_t embedder) {
  TRY_ASSIGN(Statement list,
             database.prepare("SELECT d.id, d.first_chunk, d.chunks FROM documents d JOIN vectors v ON "
                              "v.document = d.id AND v.embedder = ? WHERE d.collection = ? ORDER BY d.id"));
  list.with(embedder, collection);
  std::vector<VectorRows> documents;
  for (;;) {
    TRY_ASSIGN(const bool has_row, list.step());
    if (!has_row) break;
    documents.push_back({list.integer(0), list.integer(1), static_cast<size_t>(list.integer(2))});
  }
  return Result<std::vector<VectorRows>>{std::move(documents)};
}

}  // namespace

std::shared_ptr<VectorShelf::Entry> VectorShelf::entry_of(Key key, int dimensions) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_shared<Entry>(dimensions);
  entry->last_use = ++clock_;
  return entry;
}

Status VectorShelf::update(Entry& entry, const Database& database, Key key, int64_t revision, int dimensions) {
  TRY_ASSIGN(const auto stored, vector_rows(database, key.first, key.second));
  std::set<int64_t> present;
  for (const VectorRows& document : stored) present.insert(document.id);
  for (auto it = entry.documents.begin(); it != entry.documents.end();) {
    if (present.count(it->first) > 0) {
      ++it;
      continue;
    }
    const auto [first, n] = it->second;
    for (size_t i = first; i < first + n; ++i) entry.firsts.erase(entry.chunks[i]);
    std::fill_n(entry.chunks.begin() + static_cast<std::ptrdiff_t>(first), n, int64_t{0});
    entry.n_gone += n;
    it = entry.documents.erase(it);
  }
  if (entry.n_gone > kMaxGone) {
    entry.search = VectorSearch(dimensions);
    entry.chunks.clear();
    entry.firsts.clear();
    entry.most_of_a_chunk = 1;
    entry.documents.clear();
    entry.n_gone = 0;
  }
  TRY_ASSIGN(Statement read, database.prepare("SELECT data FROM vectors WHERE document = ? AND embedder = ?"));
  for (const VectorRows& document : stored) {
    if (entry.documents.count(document.id) > 0) continue;
    TRY_ASSIGN(const bool has_row, read.with(document.id, key.second).step());
    if (!has_row) continue;
    const auto vectors = read_vectors(read.blob(0), document.chunks, static_cast<size_t>(dimensions));
    if (!vectors) {
      return Error{vectors.error().code,
                   "the database: document " + std::to_string(document.id) + ": " + vectors.error().message};
    }
    const size_t first = entry.chunks.size();
    entry.search.add(vectors->values);
    for (size_t i = 0; i < document.chunks; ++i) {
      const int64_t chunk = document.first_chunk + static_cast<int64_t>(i);
      entry.firsts[chunk] = entry.chunks.size();
      entry.chunks.insert(entry.chunks.end(), vectors->counts[i], chunk);
      entry.most_of_a_chunk = std::max<size_t>(entry.most_of_a_chunk, vectors->counts[i]);
    }
    entry.documents[document.id] = {first, entry.chunks.size() - first};
  }
  entry.revision = revision;
  return Ok{};
}

void VectorShelf::drop_oldest(const Entry& kept) {
  std::lock_guard lock(mutex_);
  uint64_t all = 0;
  for (const auto& [key, bytes] : bytes_) all += bytes;
  while (all > max_bytes_ && entries_.size() > 1) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.get() == &kept) continue;
      if (oldest == entries_.end() || it->second->last_use < oldest->second->last_use) oldest = it;
    }
    all -= bytes_[oldest->first];
    bytes_.erase(oldest->first);
    entries_.erase(oldest);
  }
}

Result<std::vector<NearChunk>> VectorShelf::nearest(const Database& database, int64_t collection, int64_t revision,
                                                    int64_t embedder, std::span<const float> query, size_t k,
                                                    std::span<const int64_t> also) {
  const Key key{collection, embedder};
  const auto dimensions = static_cast<int>(query.size());
  const std::shared_ptr<Entry> entry = entry_of(key, dimensions);
  {
    std::unique_lock lock(entry->mutex);
    // One that began before another's change sees a little more than there was then; its texts are looked up, after all.
    if (entry->revision < revision) {
      TRY(update(*entry, database, key, revision, dimensions));
      const uint64_t bytes = entry->chunks.size() * (query.size() * 5 + 16);
      lock.unlock();
      {
        std::lock_guard shelf(mutex_);
        bytes_[key] = bytes;
      }
      drop_oldest(*entry);
    }
  }
  std::shared_lock lock(entry->mutex);
  return nearest_chunks(*entry, query, k, also);
}

// So many vectors that k chunks are among them, however many of them are those of one.
std::vector<NearChunk> VectorShelf::nearest_chunks(const Entry& entry, std::span<const float> query, size_t k,
                                                   std::span<const int64_t> also) {
  std::vector<NearChunk> near;
  std::unordered_set<int64_t> seen{0};
  for (const Neighbour& neighbour : entry.search.nearest(query, k * entry.most_of_a_chunk + entry.n_gone)) {
    const int64_t chunk = entry.chunks[neighbour.index];
    if (near.size() < k && seen.insert(chunk).second) near.push_back({chunk, neighbour.score});
  }
  const size_t dimensions = query.size();
  for (const int64_t chunk : also) {
    const auto first = entry.firsts.find(chunk);
    if (first == entry.firsts.end() || !seen.insert(chunk).second) continue;
    float best = -std::numeric_limits<float>::infinity();
    for (size_t i = first->second; i < entry.chunks.size() && entry.chunks[i] == chunk; ++i) {
      const std::span<const float> vector = entry.search.vectors().subspan(i * dimensions, dimensions);
      best = std::max(best, static_cast<float>(std::inner_product(vector.begin(), vector.end(), query.begin(), 0.0)));
    }
    near.push_back({chunk, best});
  }
  return near;
}

}  // namespace chimere::retrieval

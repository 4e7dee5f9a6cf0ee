// vector_shelf.h  The vectors of collections, as searches scan them: read from the database once and kept up with it.
//
// A change of a collection costs what the change is: documents that came are added, those that went are passed over until
// they are so many that all is read anew. What is asked for least recently goes when there is too much. Use it from any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "retrieval/collection_schema.h"
#include "retrieval/vector_search.h"

namespace chimere::retrieval {

struct NearChunk {
  int64_t chunk = 0;
  float score = 0;
};

class VectorShelf {
 public:
  explicit VectorShelf(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // The k nearest, best first, each as near as the nearest of its vectors; behind them those of `also` that have vectors
  // and are not among them, in their order. `embedder`: its id in the database. `revision`: of the collection, as
  // `database` sees it.
  Result<std::vector<NearChunk>> nearest(const Database& database, int64_t collection, int64_t revision,
                                         int64_t embedder, std::span<const float> query, size_t k,
                                         std::span<const int64_t> also = {});

 private:
  struct Entry {
    explicit Entry(int dimensions) : search(dimensions) {}
    std::shared_mutex mutex;
    int64_t revision = -1;
    VectorSearch search;
    std::vector<int64_t> chunks;                             // of each vector; 0: its document is gone
    std::unordered_map<int64_t, size_t> firsts;              // the first vector of each chunk
    size_t most_of_a_chunk = 1;                              // vectors
    std::map<int64_t, std::pair<size_t, size_t>> documents;  // first vector and number, by id
    size_t n_gone = 0;
    uint64_t last_use = 0;  // under the shelf's mutex
  };
  using Key = std::pair<int64_t, int64_t>;

  std::shared_ptr<Entry> entry_of(Key key, int dimensions);
  static std::vector<NearChunk> nearest_chunks(const Entry& entry, std::span<const float> query, size_t k,
                                               std::span<const int64_t> also);
  static Status update(Entry& entry, const Database& database, Key key, int64_t revision, int dimensions);
  void drop_oldest(const Entry& kept);

  const uint64_t max_bytes_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_;
  std::map<Key, uint64_t> bytes_;  // of each, when it was last looked at
  uint64_t clock_ = 0;
};

}  // namespace chimere::retrieval

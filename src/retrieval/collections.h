// collections.h  Documents of many owners, found again by their words and by what they mean. One SQLite file.
//
// A document is stored by one transaction: after a crash it is there as it was, as it is now, or not at all. One writes
// at a time, processes among them; any number read meanwhile, and see what was there when they began. Nobody's search
// looks at what another owner has. Use it from any thread.
//
//   auto collections = Collections::open(path, limits);
//   (*collections)->use(embedder);
//   (*collections)->add({.owner = "ann", .collection = "notes", .name = "a.md", .bytes = text});
//   (*collections)->search({.owner = "ann", .query = "where is the key of the shed?"});
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "retrieval/collection_rows.h"
#include "retrieval/collection_schema.h"
#include "retrieval/collection_types.h"
#include "retrieval/matcher.h"
#include "retrieval/rank_fusion.h"
#include "retrieval/stored_vectors.h"
#include "retrieval/vector_shelf.h"

namespace chimere::documents {
struct Chunk;
}

namespace chimere::retrieval {

class Collections {
 public:
  static Result<std::unique_ptr<Collections>> open(const std::string& path, CollectionLimits limits = {});

  // Before the first add() or search(). Without an embedder documents are found by their words alone; vectors of others
  // stay where they are and are not looked at.
  void use(TextEmbedder embedder) { embedder_ = std::move(embedder); }
  void use(PairScorer scorer) { scorer_ = std::move(scorer); }
  void use(std::shared_ptr<const Matcher> matcher) { matcher_ = std::move(matcher); }

  // 1 to 64 letters, digits, '-', '_' and '.', the first of them a letter or a digit.
  static bool is_name(std::string_view name);

  // False: it was there.
  Result<bool> create(const std::string& owner, const std::string& collection);
  Result<std::vector<CollectionInfo>> list(const std::string& owner) const;
  // not_found names those there are.
  Status remove(const std::string& owner, const std::string& collection);

  // Reads the file, cuts it, embeds its chunks and stores all of it. What is there with the same content and has vectors
  // of this embedder is left alone. Blocks for as long as the embedder needs.
  Result<Added> add(const AddCall& call);
  Result<std::vector<DocumentInfo>> documents(const std::string& owner, const std::string& collection) const;
  Status remove_document(const std::string& owner, const std::string& collection, const std::string& name);

  // Best first. A stage that fails is left out, and `trace` says so; an error only where none is left.
  Result<std::vector<Hit>> search(const SearchCall& call, SearchTrace* trace = nullptr) const;

  Result<OwnerUsage> usage(const std::string& owner) const;
  // Of all owners.
  Result<OwnerUsage> usage_of_all() const;
  const CollectionLimits& limits() const { return limits_; }
  bool has_embedder() const { return static_cast<bool>(embedder_); }

 private:
  // A connection that only reads, given back when it goes.
  class Reader;

  Collections(std::string path, CollectionLimits limits, Database writer);
  Result<Reader> reader() const;

  // All of these run inside a transaction of the writer.
  Result<StoredCollection> make_collection(const std::string& owner, const std::string& name);
  Status check_room(int64_t owner, const DocumentInfo& document) const;
  Status insert_document(const AddCall& call, int64_t hash, const std::vector<documents::Chunk>& chunks,
                         const StoredVectors& vectors, Added& added);
  Status insert_vectors(int64_t document, const StoredVectors& vectors);

  // Of this name and content.
  Result<std::optional<StoredDocument>> same_document(const AddCall& call, int64_t hash) const;
  Status store(const AddCall& call, int64_t hash, const std::vector<documents::Chunk>& chunks,
               const StoredVectors& vectors, Added& added);
  // Of a document that is there, by the embedder that is used now.
  Status add_vectors(const AddCall& call, const StoredDocument& document);
  Result<StoredVectors> embed(const AddCall& call, const std::string& title,
                              const std::vector<documents::Chunk>& chunks) const;

  // collection_search.cpp
  struct Searching;
  // `by_words`: what was found so, best first; a cosine below `least_alone` is enough for these alone.
  Status search_vectors(const Searching& searching, const std::vector<int64_t>& by_words, double least_alone,
                        SearchTrace& trace, ScoredRanking& ranking) const;
  // Puts the best of `fused` into the order in which they answer the question.
  Status match(const Searching& searching, const std::vector<ScoredRanking>& rankings, SearchTrace& trace,
               std::vector<Fused>& fused) const;
  void rerank(const SearchCall& call, SearchTrace& trace, std::vector<Hit>& hits) const;

  const std::string path_;
  const CollectionLimits limits_;
  TextEmbedder embedder_;
  PairScorer scorer_;
  std::shared_ptr<const Matcher> matcher_;
  std::mutex writing_;
  Database writer_;  // under writing_
  mutable std::mutex readers_mutex_;
  mutable std::vector<Database> readers_;  // that nobody uses now
  mutable VectorShelf shelf_;
};

}  // namespace chimere::retrieval

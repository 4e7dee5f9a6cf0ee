// collection_rows.h  Rows of the database by what they are called. For this folder alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "retrieval/collection_types.h"
#include "retrieval/collection_schema.h"

namespace chimere::retrieval {

struct StoredCollection {
  int64_t id = 0;
  int64_t owner = 0;
  int64_t revision = 0;
  std::string name;
};

// By name.
Result<std::vector<StoredCollection>> collections_of(const Database& database, const std::string& owner);
// not_found names those there are.
Result<StoredCollection> find_collection(const Database& database, const std::string& owner, const std::string& name);

struct StoredDocument {
  int64_t id = 0;
  int64_t hash = 0;
  DocumentInfo info;
};
Result<std::vector<StoredDocument>> documents_of(const Database& database, int64_t collection);
Result<std::optional<StoredDocument>> find_document(const Database& database, int64_t collection,
                                                    const std::string& name);
// With its chunks, words and vectors, and what it counts for its owner.
Status delete_document(const Database& database, const StoredCollection& collection, const StoredDocument& document);

// What the table of words holds of a chunk's headings.
std::string heading_terms(const std::string& title, const std::string& heading);

// 0: none of this embedder's vectors are here.
Result<int64_t> find_embedder(const Database& database, const TextEmbedder& embedder);
Status raise_revision(const Database& database, int64_t collection);

}  // namespace chimere::retrieval

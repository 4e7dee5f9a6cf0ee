#include "retrieval/collection_schema.h"

#include "store/schema.h"

namespace chimere::retrieval {
namespace {

constexpr int64_t kApplicationId = 0x43484943;  // "CHIC"

constexpr const char* kTables = R"(
CREATE TABLE owners(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  documents INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0, chunks INTEGER NOT NULL DEFAULT 0);
CREATE TABLE collections(
  id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL REFERENCES owners(id), name TEXT NOT NULL,
  created INTEGER NOT NULL, revision INTEGER NOT NULL DEFAULT 0, UNIQUE(owner, name));
CREATE TABLE documents(
  id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL REFERENCES collections(id), name TEXT NOT NULL,
  title TEXT NOT NULL, kind TEXT NOT NULL, hash INTEGER NOT NULL, bytes INTEGER NOT NULL, modified INTEGER NOT NULL,
  added INTEGER NOT NULL, first_chunk INTEGER NOT NULL, chunks INTEGER NOT NULL, UNIQUE(collection, name));
CREATE TABLE chunks(
  id INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL REFERENCES documents(id), line INTEGER NOT NULL,
  page INTEGER NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE embedders(
  id INTEGER PRIMARY KEY, fingerprint INTEGER NOT NULL, dimensions INTEGER NOT NULL, name TEXT NOT NULL,
  UNIQUE(fingerprint, dimensions));
CREATE TABLE vectors(
  document INTEGER NOT NULL REFERENCES documents(id), embedder INTEGER NOT NULL REFERENCES embedders(id),
  data BLOB NOT NULL, PRIMARY KEY(document, embedder));
CREATE INDEX chunks_of_document ON chunks(document);
)";

constexpr store::Schema kSchema{"collections", kApplicationId, kCollectionSchema, kTables};

}  // namespace

Result<Database> open_collection_database(const std::string& path, Database::Mode mode) {
  return store::open_database(path, mode, kSchema);
}

std::string words_table(int64_t collection) { return "words_" + std::to_string(collection); }

Status create_words_table(const Database& database, int64_t collection) {
  // Without its content, which the chunks have already. Endings of English words and accents do not count.
  return database.execute("CREATE VIRTUAL TABLE " + words_table(collection) +
                          " USING fts5(heading, body, content='', "
                          "tokenize=\"porter unicode61 remove_diacritics 2\")");
}

}  // namespace chimere::retrieval

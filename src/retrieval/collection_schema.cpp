#include "retrieval/collection_schema.h"

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

Result<int64_t> number(const Database& database, const char* sql) {
  TRY_ASSIGN(Statement statement, database.prepare(sql));
  TRY_ASSIGN(const bool has_row, statement.step());
  return has_row ? statement.integer(0) : 0;
}

Status check_version(const Database& database, const std::string& path, int64_t version) {
  TRY_ASSIGN(const int64_t application, number(database, "PRAGMA application_id"));
  if (application != kApplicationId) {
    return Error{Code::invalid_argument, path + ": expected a database of collections, found another one"};
  }
  if (version > kCollectionSchema) {
    return Error{Code::unsupported, path + ": was written by a newer program: expected version " +
                                        std::to_string(kCollectionSchema) + " or less, found " +
                                        std::to_string(version)};
  }
  return Ok{};
}

// A file that holds nothing yet. Two processes may come here at once: the second finds the tables made.
Status make_tables(const Database& database, const std::string& path) {
  TRY_ASSIGN(Transaction transaction, Transaction::begin(database, Database::Mode::write));
  TRY_ASSIGN(const int64_t version, number(database, "PRAGMA user_version"));
  if (version > 0) return check_version(database, path, version);
  TRY_ASSIGN(const int64_t n_tables, number(database, "SELECT count(*) FROM sqlite_master"));
  if (n_tables > 0) {
    return Error{Code::invalid_argument, path + ": expected a database of collections, found another one"};
  }
  TRY(database.execute(kTables));
  TRY(database.execute("PRAGMA application_id=" + std::to_string(kApplicationId) +
                       "; PRAGMA user_version=" + std::to_string(kCollectionSchema)));
  return transaction.commit();
}

}  // namespace

Result<Database> open_collection_database(const std::string& path, Database::Mode mode) {
  TRY_ASSIGN(Database database, Database::open(path, mode));
  TRY_ASSIGN(const int64_t version, number(database, "PRAGMA user_version"));
  if (version > 0) {
    TRY(check_version(database, path, version));
  } else if (mode == Database::Mode::write) {
    TRY(make_tables(database, path));
  } else {
    return Error{Code::not_found, path + ": holds no collections yet"};
  }
  // Those who read see the last commit while another writes.
  if (mode == Database::Mode::write) TRY(database.execute("PRAGMA journal_mode=WAL"));
  return Result<Database>{std::move(database)};
}

std::string words_table(int64_t collection) { return "words_" + std::to_string(collection); }

Status create_words_table(const Database& database, int64_t collection) {
  // Without its content, which the chunks have already. Endings of English words and accents do not count.
  return database.execute("CREATE VIRTUAL TABLE " + words_table(collection) +
                          " USING fts5(heading, body, content='', "
                          "tokenize=\"porter unicode61 remove_diacritics 2\")");
}

}  // namespace chimere::retrieval

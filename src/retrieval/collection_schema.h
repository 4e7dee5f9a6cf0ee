// collection_schema.h  The database of all collections: its tables, its version, and how it is opened.
//
//   owners        who collections belong to, and how much each has
//   collections   by owner and name; each change raises `revision`
//   documents     by collection and name; one whose content changed is a new row with a new id
//   chunks        a document's, with consecutive ids from documents.first_chunk
//   embedders     models whose vectors are here, by their fingerprint
//   vectors       of a document by one embedder, in the order of its chunks (stored_vectors.h)
//   words_ID      FTS5, of the collection with that id alone: rowids are those of chunks. Each collection has its own, so
//                 that how rare a word is tells nothing about what others keep, and nobody's search reads their rows.
#pragma once

#include <string>

#include "base/result.h"
#include "store/sqlite.h"

namespace chimere::retrieval {

using store::Database;
using store::Statement;
using store::Transaction;

inline constexpr int kCollectionSchema = 1;

// Makes the tables in a new file. Refuses a file of a newer version, and one that is no database of collections.
Result<Database> open_collection_database(const std::string& path, Database::Mode mode);

// The name of a collection's table of words.
std::string words_table(int64_t collection);
Status create_words_table(const Database& database, int64_t collection);

}  // namespace chimere::retrieval

// schema.h  A database of one kind: its tables, its version, and how it is opened.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/sqlite.h"

namespace chimere::store {

struct Schema {
  const char* what;        // "collections": stands in messages
  int64_t application_id;  // that SQLite keeps in the file's head
  int version;             // of the tables
  const char* tables;      // the statements that make them
};

// Makes the tables in a new file, which readers of others see as none. Refuses a file of a newer version, and one of
// another kind. Those who read see the last commit while another writes.
Result<Database> open_database(const std::string& path, Database::Mode mode, const Schema& schema);

// The first column of the first row; 0: there is none.
Result<int64_t> number(const Database& database, const char* sql);

}  // namespace chimere::store

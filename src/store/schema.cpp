#include "store/schema.h"

#include <utility>

namespace chimere::store {
namespace {

Error another_kind(const std::string& path, const Schema& schema) {
  return {Code::invalid_argument, path + ": expected a database of " + schema.what + ", found another one"};
}

Status check_version(const Database& database, const std::string& path, const Schema& schema, int64_t version) {
  TRY_ASSIGN(const int64_t application, number(database, "PRAGMA application_id"));
  if (application != schema.application_id) return another_kind(path, schema);
  if (version > schema.version) {
    return Error{Code::unsupported, path + ": was written by a newer program: expected version " +
                                        std::to_string(schema.version) + " or less, found " + std::to_string(version)};
  }
  return Ok{};
}

// A file that holds nothing yet. Two processes may come here at once: the second finds the tables made.
Status make_tables(const Database& database, const std::string& path, const Schema& schema) {
  TRY_ASSIGN(Transaction transaction, Transaction::begin(database, Database::Mode::write));
  TRY_ASSIGN(const int64_t version, number(database, "PRAGMA user_version"));
  if (version > 0) return check_version(database, path, schema, version);
  TRY_ASSIGN(const int64_t n_tables, number(database, "SELECT count(*) FROM sqlite_master"));
  if (n_tables > 0) return another_kind(path, schema);
  TRY(database.execute(schema.tables));
  TRY(database.execute("PRAGMA application_id=" + std::to_string(schema.application_id) +
                       "; PRAGMA user_version=" + std::to_string(schema.version)));
  return transaction.commit();
}

}  // namespace

Result<int64_t> number(const Database& database, const char* sql) {
  TRY_ASSIGN(Statement statement, database.prepare(sql));
  TRY_ASSIGN(const bool has_row, statement.step());
  return has_row ? statement.integer(0) : 0;
}

Result<Database> open_database(const std::string& path, Database::Mode mode, const Schema& schema) {
  TRY_ASSIGN(Database database, Database::open(path, mode));
  TRY_ASSIGN(const int64_t version, number(database, "PRAGMA user_version"));
  if (version > 0) {
    TRY(check_version(database, path, schema, version));
  } else if (mode == Database::Mode::write) {
    TRY(make_tables(database, path, schema));
  } else {
    return Error{Code::not_found, path + ": holds no " + schema.what + " yet"};
  }
  if (mode == Database::Mode::write) TRY(database.execute("PRAGMA journal_mode=WAL"));
  return Result<Database>{std::move(database)};
}

}  // namespace chimere::store

// sqlite.h  SQLite with errors as values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/platform/stand_still.h"
#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace chimere::store {

// Statement and database are of one thread at a time.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Values of the question marks, in their order, from the first. Each call begins the statement anew.
  template <class... Values>
  Statement& with(const Values&... values) {
    reset();
    int at = 0;
    (bind(++at, values), ...);
    return *this;
  }
  // True: there is a row, whose columns can be read until the next step.
  Result<bool> step();
  // To the end; rows are passed over.
  Status run();

  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::span<const std::byte> blob(int column) const;

 private:
  friend class Database;
  Statement(sqlite3* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  void reset();
  void bind(int at, int64_t value);
  void bind(int at, std::string_view text);
  void bind(int at, std::span<const std::byte> blob);

  sqlite3* database_;
  sqlite3_stmt* statement_;  // null once moved from
  int bind_error_ = 0;
  std::optional<StandFast> fast_;  // between rows: it has a lock of the database
};

class Database {
 public:
  enum class Mode { read, write };

  // Makes the file where there is none, readable by this account alone. `path` stands in messages.
  static Result<Database> open(const std::string& path, Mode mode);

  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;
  ~Database();

  Result<Statement> prepare(std::string_view sql) const;
  // How long a statement waits for others that write.
  void wait_at_most(std::chrono::milliseconds patience);
  // Several statements without values.
  Status execute(const std::string& sql) const;
  int64_t last_id() const;

  // Statements of this database end with an error once `must_end` says so, which is asked every millisecond or so.
  // Empty: they run to their end.
  void end_when(std::function<bool()> must_end);

 private:
  Database(std::string path, sqlite3* database);
  std::string path_;
  sqlite3* database_;  // null once moved from
  std::unique_ptr<std::function<bool()>> must_end_;
};

// What is done until commit() is done as a whole, or not at all.
class Transaction {
 public:
  static Result<Transaction> begin(const Database& database, Database::Mode mode);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(const Database& database) : database_(&database) {}
  const Database* database_;  // null: ended
  StandFast fast_;
};

}  // namespace chimere::store

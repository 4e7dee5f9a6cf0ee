// postgres.h  PostgreSQL with errors as values. For this folder alone.
//
// Of one thread at a time. Nothing waits for ever: a server that does not answer counts as lost (is_lost()), and what was
// asked is then neither known to be done nor to be undone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/platform/stand_still.h"
#include "base/result.h"
#include "store/libpq.h"

namespace chimere::store {

// The rows that a statement gave.
class PostgresRows {
 public:
  PostgresRows(const Libpq& pq, pg_result* result) : pq_(&pq), result_(result, pq.clear) {}

  int size() const { return pq_->n_rows(result_.get()); }
  // Of NULL: nothing, 0, false.
  std::string text(int row, int column) const;
  int64_t integer(int row, int column) const;
  bool flag(int row, int column) const;
  // How many rows the statement changed.
  uint64_t n_changed() const;

 private:
  const Libpq* pq_;
  std::unique_ptr<pg_result, void (*)(pg_result*)> result_;
};

// As the database takes it: valid UTF-8 without zeros, U+FFFD for what is none.
std::string as_value(std::string_view text);
inline std::string as_value(int64_t number) { return std::to_string(number); }
inline std::string as_value(bool flag) { return flag ? "t" : "f"; }

class PostgresConnection {
 public:
  // io: the server is not there or does not let us in. The password is in no message.
  static Result<PostgresConnection> open(const std::string& url);

  // One statement; `values` stand for $1, $2, ...
  // io: the connection is lost. exhausted: the server can not do it now (its disk, its locks, its role). internal: else.
  Result<PostgresRows> run(const char* sql, const std::vector<std::string>& values = {});

  // Nothing can be asked any more.
  bool is_lost() const { return is_lost_; }
  // It was lost while a transaction was committed: what that did is done or not.
  bool is_unsure() const { return is_unsure_; }

 private:
  friend class PostgresTransaction;
  PostgresConnection(const Libpq& pq, pg_conn* connection) : pq_(&pq), connection_(connection, pq.finish) {}
  Error lost(const std::string& why);
  Status wait(bool for_room, int64_t deadline);

  const Libpq* pq_;
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> connection_;
  bool is_lost_ = false, is_unsure_ = false;
};

// What is done until commit() is done as a whole, or not at all.
class PostgresTransaction {
 public:
  static Result<PostgresTransaction> begin(PostgresConnection& connection);
  PostgresTransaction(PostgresTransaction&& other) noexcept;
  PostgresTransaction& operator=(PostgresTransaction&&) = delete;
  ~PostgresTransaction();
  Status commit();

 private:
  explicit PostgresTransaction(PostgresConnection& connection) : connection_(&connection) {}
  PostgresConnection* connection_;  // null: ended
  StandFast fast_;
};

}  // namespace chimere::store

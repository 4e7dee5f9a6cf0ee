#include "store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <utility>

namespace chimere::store {
namespace {

constexpr std::chrono::seconds kPatience{10};  // of one who writes with another
constexpr int kInstructionsPerLook = 20'000;   // of SQLite's machine, about a millisecond

Code code_of(int result) {
  switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_NOMEM: return Code::exhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return Code::corrupt;
    case SQLITE_INTERRUPT: return Code::cancelled;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM: return Code::io;
    default: return Code::internal;
  }
}

Error failure(sqlite3* database, int result, const std::string& where) {
  const char* what = database ? sqlite3_errmsg(database) : sqlite3_errstr(result);
  return {code_of(result), where + ": " + what};
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      bind_error_(other.bind_error_),
      fast_(std::move(other.fast_)) {}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::reset() {
  sqlite3_reset(statement_);
  fast_.reset();
  bind_error_ = SQLITE_OK;
}

void Statement::bind(int at, int64_t value) {
  if (const int r = sqlite3_bind_int64(statement_, at, value); r != SQLITE_OK) bind_error_ = r;
}

void Statement::bind(int at, std::string_view text) {
  const int r =
      sqlite3_bind_text64(statement_, at, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (r != SQLITE_OK) bind_error_ = r;
}

void Statement::bind(int at, std::span<const std::byte> blob) {
  const int r = blob.empty() ? sqlite3_bind_zeroblob(statement_, at, 0)
                             : sqlite3_bind_blob64(statement_, at, blob.data(), blob.size(), SQLITE_TRANSIENT);
  if (r != SQLITE_OK) bind_error_ = r;
}

Result<bool> Statement::step() {
  if (bind_error_ != SQLITE_OK) return failure(nullptr, bind_error_, "a value of a statement");
  if (!fast_) fast_.emplace();
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  std::optional<Error> error;
  if (result != SQLITE_DONE) error = failure(database_, result, "the database");
  sqlite3_reset(statement_);
  fast_.reset();
  if (error) return *error;
  return false;
}

Status Statement::run() {
  for (;;) {
    TRY_ASSIGN(const bool has_row, step());
    if (!has_row) return Ok{};
  }
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text ? std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : std::string();
}

std::span<const std::byte> Statement::blob(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return {data, data ? static_cast<size_t>(sqlite3_column_bytes(statement_, column)) : 0};
}

Database::Database(std::string path, sqlite3* database)
    : path_(std::move(path)), database_(database), must_end_(std::make_unique<std::function<bool()>>()) {}

Database::Database(Database&& other) noexcept
    : path_(std::move(other.path_)),
      database_(std::exchange(other.database_, nullptr)),
      must_end_(std::move(other.must_end_)) {}

// The last one to close a database writes its journal back.
Database::~Database() {
  const StandFast fast;
  sqlite3_close(database_);
}

Result<Database> Database::open(const std::string& path, Mode mode) {
  if (mode == Mode::write) {
    // SQLite gives its journal the mode of the file, so that one open() here decides who may read what is kept.
    const int handle = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (handle < 0) return Error{Code::io, path + ": can not be opened to be written"};
    ::close(handle);
  }
  sqlite3* opened = nullptr;
  // Those who read may have to bring the journal's shared index into being, so they are no pure readers of the file.
  const int result = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(path, opened);
  if (result != SQLITE_OK) return failure(opened, result, path);
  sqlite3_extended_result_codes(opened, 1);
  database.wait_at_most(kPatience);
  // A file from elsewhere runs nothing of its own: no functions in its schema, no edited schema, no odd cells.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  TRY(database.execute("PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL"));
  if (mode == Mode::read) TRY(database.execute("PRAGMA query_only=ON"));
  return Result<Database>{std::move(database)};
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (result != SQLITE_OK) return failure(database_, result, path_);
  return Result<Statement>{Statement(database_, statement)};
}

Status Database::execute(const std::string& sql) const {
  const StandFast fast;
  const int result = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return failure(database_, result, path_);
  return Ok{};
}

void Database::wait_at_most(std::chrono::milliseconds patience) {
  sqlite3_busy_timeout(database_, static_cast<int>(patience.count()));
}

int64_t Database::last_id() const { return sqlite3_last_insert_rowid(database_); }

void Database::end_when(std::function<bool()> must_end) {
  *must_end_ = std::move(must_end);
  const auto ask = [](void* asked) { return (*static_cast<std::function<bool()>*>(asked))() ? 1 : 0; };
  const bool asks = static_cast<bool>(*must_end_);
  sqlite3_progress_handler(database_, kInstructionsPerLook, asks ? +ask : nullptr, asks ? must_end_.get() : nullptr);
}

Result<Transaction> Transaction::begin(const Database& database, Database::Mode mode) {
  Transaction transaction(database);
  if (Status begun = database.execute(mode == Database::Mode::write ? "BEGIN IMMEDIATE" : "BEGIN"); !begun) {
    transaction.database_ = nullptr;
    return begun.error();
  }
  return Result<Transaction>{std::move(transaction)};
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)), fast_(std::move(other.fast_)) {}

Transaction::~Transaction() {
  if (database_) (void)database_->execute("ROLLBACK");
}

Status Transaction::commit() {
  TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return Ok{};
}

}  // namespace chimere::store

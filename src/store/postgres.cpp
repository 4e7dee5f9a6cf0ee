#include "store/postgres.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

#include "store/journal_url.h"
#include "text/utf8.h"

namespace chimere::store {
namespace {

constexpr int kOldestServer = 100'000;  // PostgreSQL 10: identity columns
constexpr int64_t kStatementMilliseconds = 30'000;

int64_t now_milliseconds() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

std::string one_line(const char* text) {
  std::string line(text ? text : "");
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

// By the class of its SQLSTATE: what a server says of itself, and not of the statement, may be over in a while.
Code code_of_state(std::string_view state) {
  constexpr std::string_view kPassing[] = {"40", "53", "55", "57", "58"};
  const bool is_passing = std::any_of(std::begin(kPassing), std::end(kPassing),
                                      [&](std::string_view begin) { return state.starts_with(begin); });
  // 25006: it may only be read, as one that has become the second of two.
  return is_passing || state == "25006" ? Code::exhausted : Code::internal;
}

}  // namespace

std::string PostgresRows::text(int row, int column) const {
  return std::string(pq_->value(result_.get(), row, column),
                     static_cast<size_t>(pq_->value_bytes(result_.get(), row, column)));
}

int64_t PostgresRows::integer(int row, int column) const {
  const char* begin = pq_->value(result_.get(), row, column);
  int64_t number = 0;
  std::from_chars(begin, begin + pq_->value_bytes(result_.get(), row, column), number);
  return number;
}

bool PostgresRows::flag(int row, int column) const { return pq_->value(result_.get(), row, column)[0] == 't'; }

uint64_t PostgresRows::n_changed() const {
  const char* begin = pq_->n_changed(result_.get());
  uint64_t n = 0;
  std::from_chars(begin, begin + std::strlen(begin), n);
  return n;
}

std::string as_value(std::string_view text) {
  std::string value;
  Utf8Stream stream;
  stream.push(text, value);
  stream.finish(value);
  for (size_t zero = value.find('\0'); zero != std::string::npos; zero = value.find('\0', zero)) {
    value.replace(zero, 1, kReplacementChar);
  }
  return value;
}

Result<PostgresConnection> PostgresConnection::open(const std::string& url) {
  TRY_ASSIGN(const Libpq* const pq, load_libpq());
  TRY(check_journal_url(url));
  char* problem = nullptr;
  Libpq::Option* options = pq->parse(url.c_str(), &problem);
  // What the library says of a URL that it can not read has parts of it, and one of them may be the password.
  pq->free_text(problem);
  if (!options) {
    return Error{Code::invalid_argument, "the journal's URL can not be read: expected " + std::string(kJournalUrlForm)};
  }
  pq->free_options(options);
  // Those before `dbname`, which stands for the whole URL, hold where the URL says nothing.
  const char* const names[] = {"connect_timeout", "tcp_user_timeout", "application_name",
                               "dbname",          "client_encoding",  nullptr};
  const char* const values[] = {"5", "10000", "chimere", url.c_str(), "UTF8", nullptr};
  PostgresConnection made(*pq, pq->connect(names, values, 1));
  if (!made.connection_) return Error{Code::exhausted, "the journal's database: there is no memory for a connection"};
  if (pq->status(made.connection_.get()) != kPgConnected) {
    return Error{Code::io, "the journal's database: " + one_line(pq->problem(made.connection_.get()))};
  }
  const int version = pq->server_version(made.connection_.get());
  if (version < kOldestServer) {
    return Error{Code::unsupported, "the journal's database: expected PostgreSQL 10 or later, found " +
                                        std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100)};
  }
  pq->set_nonblocking(made.connection_.get(), 1);
  // Sent by the server to find out that we are gone without a word, when others wait for what we hold.
  TRY(
      made.run("SELECT set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', "
               "false), set_config('tcp_keepalives_count', '3', false)"));
  return Result<PostgresConnection>{std::move(made)};
}

Error PostgresConnection::lost(const std::string& why) {
  is_lost_ = true;
  return {Code::io, "the journal's database: " + why};
}

Status PostgresConnection::wait(bool for_room, int64_t deadline) {
  pollfd handle{pq_->socket(connection_.get()), static_cast<int16_t>(for_room ? POLLIN | POLLOUT : POLLIN), 0};
  for (;;) {
    const int64_t left = deadline - now_milliseconds();
    if (left <= 0) return lost("it gave no answer for " + std::to_string(kStatementMilliseconds / 1000) + " s");
    const int n = ::poll(&handle, 1, static_cast<int>(left));
    if (n > 0) return Ok{};
    if (n < 0 && errno != EINTR) return lost("its connection can not be waited for");
  }
}

Result<PostgresRows> PostgresConnection::run(const char* sql, const std::vector<std::string>& values) {
  if (is_lost_) return lost("the connection was lost");
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  pg_conn* const connection = connection_.get();
  const int64_t deadline = now_milliseconds() + kStatementMilliseconds;
  if (pq_->send(connection, sql, static_cast<int>(texts.size()), nullptr, texts.data(), nullptr, nullptr, 0) != 1) {
    return lost(one_line(pq_->problem(connection)));
  }
  for (int left = 1; (left = pq_->flush(connection)) != 0;) {
    if (left < 0) return lost(one_line(pq_->problem(connection)));
    TRY(wait(true, deadline));
    if (pq_->take_input(connection) != 1) return lost(one_line(pq_->problem(connection)));
  }
  // The last result counts; behind it comes a null.
  PostgresRows rows(*pq_, nullptr);
  bool has_rows = false;
  for (;;) {
    while (pq_->is_busy(connection) != 0) {
      TRY(wait(false, deadline));
      if (pq_->take_input(connection) != 1) return lost(one_line(pq_->problem(connection)));
    }
    pg_result* const result = pq_->next_result(connection);
    if (!result) break;
    rows = PostgresRows(*pq_, result);
    has_rows = true;
    const int status = pq_->result_status(result);
    if (status == kPgDone || status == kPgRows) continue;
    // Its last words, as when it is shut down.
    const char* const severity = pq_->result_field(result, kPgSeverity);
    const bool is_fatal = severity && (std::strcmp(severity, "FATAL") == 0 || std::strcmp(severity, "PANIC") == 0);
    if (is_fatal || pq_->status(connection) != kPgConnected) return lost(one_line(pq_->problem(connection)));
    const char* const state = pq_->result_field(result, kPgState);
    Error error{code_of_state(state ? state : ""),
                "the journal's database: " + one_line(pq_->result_field(result, kPgMessage))};
    // What is left of it, so that the next statement finds its own results.
    while (pg_result* const rest = pq_->next_result(connection)) pq_->clear(rest);
    return error;
  }
  if (!has_rows) return lost(one_line(pq_->problem(connection)));
  return Result<PostgresRows>{std::move(rows)};
}

Result<PostgresTransaction> PostgresTransaction::begin(PostgresConnection& connection) {
  PostgresTransaction transaction(connection);
  if (const auto begun = connection.run("BEGIN"); !begun) {
    transaction.connection_ = nullptr;
    return begun.error();
  }
  return Result<PostgresTransaction>{std::move(transaction)};
}

PostgresTransaction::PostgresTransaction(PostgresTransaction&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)), fast_(std::move(other.fast_)) {}

PostgresTransaction::~PostgresTransaction() {
  if (connection_ && !connection_->is_lost()) (void)connection_->run("ROLLBACK");
}

Status PostgresTransaction::commit() {
  PostgresConnection& connection = *std::exchange(connection_, nullptr);
  const auto done = connection.run("COMMIT");
  connection.is_unsure_ = connection.is_lost();
  if (!done) return done.error();
  return Ok{};
}

}  // namespace chimere::store

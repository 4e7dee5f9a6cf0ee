#include "store/postgres_schema.h"

#include <cstdio>

#include "base/hash.h"
#include "text/utf8.h"

namespace chimere::store {
namespace {

constexpr int64_t kPostgresVersion = 1;
constexpr size_t kMaxOwnerBytes = 1'000;  // an index takes 2,700 of all its columns

constexpr const char* kMakeTables[] = {
    "CREATE TABLE chimere_journal(version INTEGER NOT NULL)",
    "CREATE TABLE chimere_agreements(owner TEXT PRIMARY KEY, agreed BOOLEAN NOT NULL, at BIGINT NOT NULL)",
    R"(CREATE TABLE chimere_answers(
      id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner TEXT NOT NULL, request_id TEXT NOT NULL,
      answer_id TEXT NOT NULL, conversation TEXT NOT NULL, created BIGINT NOT NULL, model TEXT NOT NULL,
      route TEXT NOT NULL, artefacts TEXT NOT NULL, sources TEXT NOT NULL, messages TEXT NOT NULL, answer TEXT NOT NULL,
      tool_calls TEXT NOT NULL, tools TEXT NOT NULL, finish TEXT NOT NULL, prompt_tokens BIGINT NOT NULL,
      completion_tokens BIGINT NOT NULL, milliseconds BIGINT NOT NULL, bytes BIGINT NOT NULL))",
    "CREATE INDEX chimere_answers_by_owner ON chimere_answers(owner, id)",
    "CREATE INDEX chimere_answers_by_request ON chimere_answers(owner, request_id)",
    "CREATE INDEX chimere_answers_by_answer ON chimere_answers(owner, answer_id)",
    "CREATE INDEX chimere_answers_by_conversation ON chimere_answers(owner, conversation)",
    "CREATE INDEX chimere_answers_by_age ON chimere_answers(created)",
    R"(CREATE TABLE chimere_feedback(
      id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      answer BIGINT NOT NULL REFERENCES chimere_answers(id) ON DELETE CASCADE,
      at BIGINT NOT NULL, kind TEXT NOT NULL, rating BIGINT NOT NULL, text TEXT NOT NULL))",
    "CREATE INDEX chimere_feedback_by_answer ON chimere_feedback(answer)",
    R"(CREATE TABLE chimere_scores(
      answer BIGINT PRIMARY KEY REFERENCES chimere_answers(id) ON DELETE CASCADE,
      at BIGINT NOT NULL, score INTEGER NOT NULL, scorer TEXT NOT NULL, reason TEXT NOT NULL))",
    // When each kind of job was last due, and jobs that are to be done.
    "CREATE TABLE chimere_clock(kind TEXT PRIMARY KEY, at BIGINT NOT NULL)",
    R"(CREATE TABLE chimere_jobs(
      id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL,
      UNIQUE(kind, owner)))",
    "INSERT INTO chimere_journal(version) VALUES(1)",
};

}  // namespace

Status make_postgres_tables(PostgresConnection& database) {
  TRY_ASSIGN(PostgresTransaction transaction, PostgresTransaction::begin(database));
  // Two replicas may come here at once: the second finds the tables made.
  TRY(database.run("SELECT pg_advisory_xact_lock(1126713426)"));
  TRY_ASSIGN(const PostgresRows known, database.run("SELECT to_regclass('chimere_journal') IS NOT NULL"));
  if (!known.flag(0, 0)) {
    for (const char* sql : kMakeTables) TRY(database.run(sql));
    return transaction.commit();
  }
  TRY_ASSIGN(const PostgresRows version, database.run("SELECT max(version) FROM chimere_journal"));
  if (version.integer(0, 0) == kPostgresVersion) return Ok{};
  return Error{Code::unsupported, "the journal's database: was written by a newer program: expected version " +
                                      std::to_string(kPostgresVersion) + ", found " +
                                      std::to_string(version.integer(0, 0))};
}

std::string as_owner(const std::string& owner) {
  const bool is_plain = owner.size() <= kMaxOwnerBytes && is_valid_utf8(owner) && owner.find('\0') == std::string::npos;
  if (is_plain) return owner;
  char hash[24];
  std::snprintf(hash, sizeof hash, " #%016llx", static_cast<unsigned long long>(hash64(owner)));
  return as_value(std::string_view(owner).substr(0, kMaxOwnerBytes)) + hash;
}

}  // namespace chimere::store

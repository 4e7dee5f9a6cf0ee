// postgres_journal.cpp  The journal in PostgreSQL, which replicas on several machines share.
//
// A connection that is lost is opened again by the next call. While the server is away, calls fail at once for a while, so
// that nobody waits for each of them.
#include <chrono>
#include <optional>
#include <utility>

#include "store/journal_store.h"
#include "store/postgres.h"
#include "store/postgres_schema.h"

namespace chimere::store {
namespace {

using Values = std::vector<std::string>;

constexpr std::chrono::milliseconds kRest{1000};  // after a server that was not there

constexpr const char* kKeptColumns =
    "id, request_id, answer_id, conversation, created, model, route, artefacts, sources, messages, answer, tool_calls, "
    "tools, finish, prompt_tokens, completion_tokens, milliseconds, score, scorer, reason";

KeptAnswer read_answer(const PostgresRows& rows, int row) {
  int column = 0;
  const auto text = [&] { return rows.text(row, column++); };
  const auto integer = [&] { return rows.integer(row, column++); };
  KeptAnswer kept;
  kept.id = integer();
  kept.request_id = text();
  kept.answer_id = text();
  kept.conversation = text();
  kept.created = integer();
  kept.model = text();
  kept.route = text();
  kept.artefacts = text();
  kept.foreign = text();
  kept.messages = text();
  kept.answer = text();
  kept.tool_calls = text();
  kept.tools = text();
  kept.finish = text();
  kept.prompt_tokens = integer();
  kept.completion_tokens = integer();
  kept.milliseconds = integer();
  kept.scored = integer();
  kept.scorer = text();
  kept.score_reason = text();
  return kept;
}

class PostgresJournal : public JournalStore {
 public:
  explicit PostgresJournal(std::string url) : url_(std::move(url)) {}

  Status open() {
    TRY(ask<Ok>([](PostgresConnection& database) { return make_postgres_tables(database); }));
    return Ok{};
  }

  Result<std::map<std::string, bool>> agreements() override {
    TRY_ASSIGN(const PostgresRows rows, run("SELECT owner, agreed FROM chimere_agreements"));
    std::map<std::string, bool> all;
    for (int row = 0; row < rows.size(); ++row) all[rows.text(row, 0)] = rows.flag(row, 1);
    return all;
  }

  Status agree(const std::string& owner, bool agreed, int64_t at) override {
    TRY(
        run("INSERT INTO chimere_agreements(owner, agreed, at) VALUES($1, $2, $3) ON CONFLICT(owner) DO UPDATE SET "
            "agreed=excluded.agreed, at=excluded.at",
            {as_owner(owner), as_value(agreed), as_value(at)}));
    return Ok{};
  }

  Result<uint64_t> write(const std::vector<JournalRow>& rows, bool only_agreed) override {
    return ask<uint64_t>([&](PostgresConnection& database) -> Result<uint64_t> {
      TRY_ASSIGN(PostgresTransaction transaction, PostgresTransaction::begin(database));
      // Whoever refuses, at whatever replica, waits until this is done, or is seen here.
      TRY(database.run("LOCK TABLE chimere_agreements IN SHARE MODE"));
      uint64_t n = 0;
      for (const JournalRow& row : rows) {
        TRY_ASSIGN(const auto said,
                   database.run("SELECT agreed FROM chimere_agreements WHERE owner=$1", {as_owner(row.owner)}));
        const bool keeps = said.size() > 0 ? said.flag(0, 0) : !only_agreed;
        if (!keeps) continue;
        TRY(insert(database, row));
        ++n;
      }
      TRY(transaction.commit());
      return n;
    });
  }

  Result<JournalState> state(const std::string& owner) override {
    TRY_ASSIGN(const PostgresRows rows,
               run("SELECT count(*), coalesce(sum(bytes), 0)::bigint, coalesce(min(created), 0), (SELECT count(*) FROM "
                   "chimere_feedback WHERE answer IN (SELECT id FROM chimere_answers WHERE owner=$1)), (SELECT agreed "
                   "FROM chimere_agreements WHERE owner=$1) FROM chimere_answers WHERE owner=$1",
                   {as_owner(owner)}));
    JournalState state;
    state.answers = static_cast<uint64_t>(rows.integer(0, 0));
    state.bytes = static_cast<uint64_t>(rows.integer(0, 1));
    state.oldest = rows.integer(0, 2);
    state.feedback = static_cast<uint64_t>(rows.integer(0, 3));
    if (!rows.text(0, 4).empty()) state.agreed = rows.flag(0, 4);
    return state;
  }

  Status give(const std::string& owner, const std::string& id, const Feedback& feedback, int64_t at) override {
    return ask<Ok>([&](PostgresConnection& database) -> Status {
      TRY_ASSIGN(PostgresTransaction transaction, PostgresTransaction::begin(database));
      // It can not be erased by others until what is said of it is there, and erased with it.
      TRY_ASSIGN(const PostgresRows found,
                 database.run("SELECT id FROM chimere_answers WHERE owner=$1 AND (request_id=$2 OR answer_id=$2) ORDER "
                              "BY id DESC LIMIT 1 FOR UPDATE",
                              {as_owner(owner), as_value(id)}));
      if (found.size() == 0) return Error{Code::not_found, "no answer '" + id + "' is kept for you"};
      const std::string answer = found.text(0, 0);
      if (is_thumb(feedback.kind)) {
        TRY(database.run("DELETE FROM chimere_feedback WHERE answer=$1 AND kind IN ('up', 'down')", {answer}));
      }
      if (feedback.kind != FeedbackKind::no_thumb) {
        TRY(database.run("INSERT INTO chimere_feedback(answer, at, kind, rating, text) VALUES($1, $2, $3, $4, $5)",
                         {answer, as_value(at), feedback_name(feedback.kind), as_value(int64_t{feedback.rating}),
                          as_value(feedback.text)}));
      }
      return transaction.commit();
    });
  }

  Status set_score(int64_t id, int score, const std::string& scorer, const std::string& reason, int64_t at) override {
    TRY(run(
        "INSERT INTO chimere_scores(answer, at, score, scorer, reason) SELECT id, $2::bigint, $3::integer, $4::text, "
        "$5::text FROM chimere_answers WHERE id=$1 FOR KEY SHARE ON CONFLICT(answer) DO UPDATE SET at=excluded.at, "
        "score=excluded.score, scorer=excluded.scorer, reason=excluded.reason",
        {as_value(id), as_value(at), as_value(int64_t{score}), as_value(scorer), as_value(reason)}));
    return Ok{};
  }

  Result<std::vector<KeptAnswer>> list(const std::string& owner, int64_t before, int limit) override {
    return select("WHERE owner=$1 AND id<$2 ORDER BY id DESC LIMIT $3",
                  {as_owner(owner), as_value(before > 0 ? before : INT64_MAX), as_value(int64_t{limit})});
  }

  Result<std::vector<KeptAnswer>> accepted(const std::string& owner, int limit) override {
    return select(
        "WHERE owner=$1 AND sources='[]' AND tool_calls='[]' AND id IN (SELECT answer FROM chimere_feedback "
        "WHERE kind IN ('up', 'rating', 'correction')) ORDER BY id DESC LIMIT $2",
        {as_owner(owner), as_value(int64_t{limit})});
  }

  Result<std::vector<KeptAnswer>> unscored(const std::string& owner, int limit) override {
    return select(
        "WHERE owner=$1 AND scored IS NULL AND NOT EXISTS (SELECT FROM chimere_feedback AS said WHERE "
        "said.answer=chimere_answers.id AND said.kind IN ('up', 'down', 'rating', 'correction')) ORDER BY id LIMIT $2",
        {as_owner(owner), as_value(int64_t{limit})});
  }

  Result<std::vector<KeptAnswer>> find(const std::string& owner, const std::string& id) override {
    return select("WHERE owner=$1 AND (request_id=$2 OR answer_id=$2) ORDER BY id DESC LIMIT 1",
                  {as_owner(owner), as_value(id)});
  }

  Result<std::vector<std::string>> owners() override {
    TRY_ASSIGN(const PostgresRows rows, run("SELECT DISTINCT owner FROM chimere_answers ORDER BY owner"));
    std::vector<std::string> all;
    for (int row = 0; row < rows.size(); ++row) all.push_back(rows.text(row, 0));
    return all;
  }

  Result<uint64_t> erase_answer(const std::string& owner, const std::string& id) override {
    return change("DELETE FROM chimere_answers WHERE owner=$1 AND (request_id=$2 OR answer_id=$2)",
                  {as_owner(owner), as_value(id)});
  }
  Result<uint64_t> erase_conversation(const std::string& owner, const std::string& conversation) override {
    return change("DELETE FROM chimere_answers WHERE owner=$1 AND conversation=$2",
                  {as_owner(owner), as_value(conversation)});
  }
  Result<uint64_t> erase(const std::string& owner) override {
    return change("DELETE FROM chimere_answers WHERE owner=$1", {as_owner(owner)});
  }

  Result<uint64_t> prune(int64_t oldest, uint64_t owner_bytes) override {
    TRY_ASSIGN(const uint64_t old, change("DELETE FROM chimere_answers WHERE created<$1", {as_value(oldest)}));
    // Of each owner the newest stay, as many as there is room for.
    TRY_ASSIGN(const uint64_t much,
               change("DELETE FROM chimere_answers WHERE id IN (SELECT id FROM (SELECT id, sum(bytes) OVER (PARTITION "
                      "BY owner ORDER BY id DESC) AS upto FROM chimere_answers) AS sums WHERE upto>$1::bigint)",
                      {as_value(static_cast<int64_t>(owner_bytes))}));
    return old + much;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Status connect() {
    if (database_ && !database_->is_lost()) return Ok{};
    database_.reset();
    if (away_ && Clock::now() < rests_until_) return *away_;
    auto opened = PostgresConnection::open(url_);
    if (!opened) {
      away_ = opened.error();
      rests_until_ = Clock::now() + kRest;
      return opened.error();
    }
    away_.reset();
    database_.emplace(std::move(*opened));
    return Ok{};
  }

  // What `work` gives, by a new connection where the old one turns out to be lost. Single statements are none that harm
  // when they are done twice; a transaction that may have been committed is not done again.
  template <class T, class Work>
  Result<T> ask(Work work) {
    TRY(connect());
    Result<T> first = work(*database_);
    if (first || !database_->is_lost() || database_->is_unsure()) return first;
    TRY(connect());
    return work(*database_);
  }

  Result<PostgresRows> run(const char* sql, const Values& values = {}) {
    return ask<PostgresRows>([&](PostgresConnection& database) { return database.run(sql, values); });
  }

  Result<uint64_t> change(const char* sql, const Values& values) {
    TRY_ASSIGN(const PostgresRows rows, run(sql, values));
    return rows.n_changed();
  }

  // The same answer, written before the connection was lost, stays with what was said of it meanwhile.
  static Status insert(PostgresConnection& database, const JournalRow& row) {
    const std::string owner = as_owner(row.owner), request = as_value(row.request_id), answer = as_value(row.answer);
    TRY(database.run(
        "DELETE FROM chimere_answers WHERE owner=$1 AND request_id=$2 AND NOT (answer_id=$3 AND created=$4 "
        "AND answer=$5)",
        {owner, request, as_value(row.answer_id), as_value(row.created), answer}));
    TRY(database.run(
        "INSERT INTO chimere_answers(owner, request_id, answer_id, conversation, created, model, route, artefacts, "
        "sources, messages, answer, tool_calls, tools, finish, prompt_tokens, completion_tokens, milliseconds, bytes) "
        "SELECT $1::text, $2::text, $3::text, $4::text, $5::bigint, $6::text, $7::text, $8::text, $9::text, $10::text, "
        "$11::text, $12::text, $13::text, $14::text, $15::bigint, $16::bigint, $17::bigint, $18::bigint WHERE NOT "
        "EXISTS "
        "(SELECT FROM chimere_answers WHERE owner=$1 AND request_id=$2)",
        {owner, request, as_value(row.answer_id), as_value(row.conversation), as_value(row.created),
         as_value(row.model), as_value(row.route), as_value(row.artefacts), as_value(row.foreign),
         as_value(row.messages), answer, as_value(row.tool_calls), as_value(row.tools), as_value(row.finish),
         as_value(row.prompt_tokens), as_value(row.completion_tokens), as_value(row.milliseconds),
         as_value(row.bytes)}));
    return Ok{};
  }

  Result<std::vector<KeptAnswer>> select(const char* which, const Values& values) {
    const std::string sql = std::string("SELECT ") + kKeptColumns +
                            " FROM chimere_answers LEFT JOIN (SELECT answer AS scored, score, scorer, reason FROM "
                            "chimere_scores) AS scores ON scored=id " +
                            which;
    TRY_ASSIGN(const PostgresRows rows, run(sql.c_str(), values));
    std::vector<KeptAnswer> all;
    std::map<int64_t, size_t> places;
    std::string ids;
    for (int row = 0; row < rows.size(); ++row) {
      all.push_back(read_answer(rows, row));
      places[all.back().id] = all.size() - 1;
      ids += (ids.empty() ? "" : ",") + std::to_string(all.back().id);
    }
    if (all.empty()) return all;
    TRY_ASSIGN(const PostgresRows said, run("SELECT answer, kind, at, rating, text FROM chimere_feedback WHERE "
                                            "answer=ANY($1::bigint[]) ORDER BY id",
                                            {"{" + ids + "}"}));
    for (int row = 0; row < said.size(); ++row) {
      all[places[said.integer(row, 0)]].feedback.push_back(
          {said.text(row, 1), said.integer(row, 2), said.integer(row, 3), said.text(row, 4)});
    }
    return all;
  }

  const std::string url_;
  std::optional<PostgresConnection> database_;
  std::optional<Error> away_;  // why it could not be opened
  Clock::time_point rests_until_;
};

}  // namespace

Result<std::unique_ptr<JournalStore>> open_postgres_journal(const std::string& url) {
  auto journal = std::make_unique<PostgresJournal>(url);
  TRY(journal->open());
  return std::unique_ptr<JournalStore>(std::move(journal));
}

}  // namespace chimere::store

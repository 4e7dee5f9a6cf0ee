#include <utility>

#include "store/journal_store.h"
#include "store/schema.h"
#include "store/sqlite.h"

namespace chimere::store {
namespace {

constexpr const char* kTables = R"(
CREATE TABLE agreements(owner TEXT PRIMARY KEY, agreed INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE answers(
  id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, request_id TEXT NOT NULL, answer_id TEXT NOT NULL,
  conversation TEXT NOT NULL, created INTEGER NOT NULL, model TEXT NOT NULL, route TEXT NOT NULL,
  artefacts TEXT NOT NULL, sources TEXT NOT NULL, messages TEXT NOT NULL, answer TEXT NOT NULL,
  tool_calls TEXT NOT NULL, finish TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  milliseconds INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE INDEX answers_by_request ON answers(owner, request_id);
CREATE INDEX answers_by_answer ON answers(owner, answer_id);
CREATE INDEX answers_by_conversation ON answers(owner, conversation);
CREATE INDEX answers_by_age ON answers(created);
CREATE TABLE feedback(
  id INTEGER PRIMARY KEY AUTOINCREMENT, answer INTEGER NOT NULL REFERENCES answers(id) ON DELETE CASCADE,
  at INTEGER NOT NULL, kind TEXT NOT NULL, rating INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX feedback_by_answer ON feedback(answer);
)";

constexpr int64_t kApplicationId = 0x43484a52;  // "CHJR"

const Schema kJournalSchema{"answers", kApplicationId, 1, kTables};

// Are made where they are missing: files of before have none, and programs of before look at none.
constexpr const char* kScoreTable =
    "CREATE TABLE IF NOT EXISTS scores(answer INTEGER PRIMARY KEY REFERENCES answers(id) ON DELETE CASCADE, "
    "at INTEGER NOT NULL, score INTEGER NOT NULL, scorer TEXT NOT NULL, reason TEXT NOT NULL)";

constexpr const char* kToolTable =
    "CREATE TABLE IF NOT EXISTS tools(answer INTEGER PRIMARY KEY REFERENCES answers(id) ON DELETE CASCADE, "
    "tools TEXT NOT NULL)";

constexpr const char* kAnswerColumns =
    "id, request_id, answer_id, conversation, created, model, route, artefacts, sources, messages, answer, tool_calls, "
    "finish, prompt_tokens, completion_tokens, milliseconds, "
    "(SELECT score FROM scores WHERE scores.answer=answers.id), "
    "(SELECT scorer FROM scores WHERE scores.answer=answers.id), "
    "(SELECT reason FROM scores WHERE scores.answer=answers.id), "
    "(SELECT tools FROM tools WHERE tools.answer=answers.id)";

KeptAnswer read_answer(const Statement& row) {
  KeptAnswer kept;
  kept.id = row.integer(0);
  kept.request_id = row.text(1);
  kept.answer_id = row.text(2);
  kept.conversation = row.text(3);
  kept.created = row.integer(4);
  kept.model = row.text(5);
  kept.route = row.text(6);
  kept.artefacts = row.text(7);
  kept.foreign = row.text(8);
  kept.messages = row.text(9);
  kept.answer = row.text(10);
  kept.tool_calls = row.text(11);
  kept.finish = row.text(12);
  kept.prompt_tokens = row.integer(13);
  kept.completion_tokens = row.integer(14);
  kept.milliseconds = row.integer(15);
  kept.scored = row.integer(16);
  kept.scorer = row.text(17);
  kept.score_reason = row.text(18);
  kept.tools = row.text(19);
  return kept;
}

// Erased text is overwritten, in the database and in SQLite's own journal.
class SqliteJournal : public JournalStore {
 public:
  explicit SqliteJournal(Database database) : database_(std::move(database)) {}

  Result<std::map<std::string, bool>> agreements() override {
    std::map<std::string, bool> all;
    TRY_ASSIGN(Statement rows, database_.prepare("SELECT owner, agreed FROM agreements"));
    for (;;) {
      TRY_ASSIGN(const bool has_row, rows.step());
      if (!has_row) return all;
      all[rows.text(0)] = rows.integer(1) != 0;
    }
  }

  Status agree(const std::string& owner, bool agreed, int64_t at) override {
    TRY_ASSIGN(Statement row,
               database_.prepare("INSERT INTO agreements(owner, agreed, at) VALUES(?,?,?) ON "
                                 "CONFLICT(owner) DO UPDATE SET agreed=excluded.agreed, at=excluded.at"));
    return row.with(owner, int64_t{agreed}, at).run();
  }

  Result<uint64_t> write(const std::vector<JournalRow>& rows, bool only_agreed) override {
    TRY_ASSIGN(Transaction transaction, Transaction::begin(database_, Database::Mode::write));
    uint64_t n = 0;
    for (const JournalRow& row : rows) {
      TRY_ASSIGN(const std::optional<bool> agreed, agreed_by(row.owner));
      if (!agreed.value_or(!only_agreed)) continue;
      TRY(insert(row));
      ++n;
    }
    TRY(transaction.commit());
    return n;
  }

  Result<JournalState> state(const std::string& owner) override {
    JournalState state;
    TRY_ASSIGN(state.agreed, agreed_by(owner));
    TRY_ASSIGN(Statement answers, database_.prepare("SELECT count(*), ifnull(sum(bytes),0), ifnull(min(created),0) "
                                                    "FROM answers WHERE owner=?"));
    TRY(answers.with(owner).step());
    state.answers = static_cast<uint64_t>(answers.integer(0));
    state.bytes = static_cast<uint64_t>(answers.integer(1));
    state.oldest = answers.integer(2);
    TRY_ASSIGN(Statement said, database_.prepare("SELECT count(*) FROM feedback JOIN answers ON "
                                                 "feedback.answer=answers.id WHERE answers.owner=?"));
    TRY(said.with(owner).step());
    state.feedback = static_cast<uint64_t>(said.integer(0));
    return state;
  }

  Status give(const std::string& owner, const std::string& id, const Feedback& feedback, int64_t at) override {
    TRY_ASSIGN(Transaction transaction, Transaction::begin(database_, Database::Mode::write));
    TRY_ASSIGN(Statement find, database_.prepare("SELECT id FROM answers WHERE owner=?1 AND (request_id=?2 OR "
                                                 "answer_id=?2) ORDER BY id DESC LIMIT 1"));
    TRY_ASSIGN(const bool is_there, find.with(owner, id).step());
    if (!is_there) return Error{Code::not_found, "no answer '" + id + "' is kept for you"};
    const int64_t answer = find.integer(0);
    if (is_thumb(feedback.kind)) {
      TRY_ASSIGN(Statement old, database_.prepare("DELETE FROM feedback WHERE answer=? AND kind IN ('up', 'down')"));
      TRY(old.with(answer).run());
    }
    if (feedback.kind != FeedbackKind::no_thumb) {
      TRY_ASSIGN(Statement row,
                 database_.prepare("INSERT INTO feedback(answer, at, kind, rating, text) VALUES(?,?,?,?,?)"));
      TRY(row.with(answer, at, std::string_view(feedback_name(feedback.kind)), int64_t{feedback.rating}, feedback.text)
              .run());
    }
    return transaction.commit();
  }

  Status set_score(int64_t id, int score, const std::string& scorer, const std::string& reason, int64_t at) override {
    TRY_ASSIGN(Statement row,
               database_.prepare("INSERT INTO scores(answer, at, score, scorer, reason) SELECT id, ?2, ?3, ?4, ?5 FROM "
                                 "answers WHERE id=?1 ON CONFLICT(answer) DO UPDATE SET at=excluded.at, "
                                 "score=excluded.score, scorer=excluded.scorer, reason=excluded.reason"));
    return row.with(id, at, int64_t{score}, scorer, reason).run();
  }

  Result<std::vector<KeptAnswer>> list(const std::string& owner, int64_t before, int limit) override {
    TRY_ASSIGN(Statement rows, select("WHERE owner=? AND id<? ORDER BY id DESC LIMIT ?"));
    rows.with(owner, before > 0 ? before : INT64_MAX, int64_t{limit});
    return read(rows);
  }

  Result<std::vector<KeptAnswer>> accepted(const std::string& owner, int limit) override {
    TRY_ASSIGN(Statement rows,
               select("WHERE owner=? AND sources='[]' AND tool_calls='[]' AND id IN (SELECT answer FROM feedback WHERE "
                      "kind IN ('up', 'rating', 'correction')) ORDER BY id DESC LIMIT ?"));
    rows.with(owner, int64_t{limit});
    return read(rows);
  }

  Result<std::vector<KeptAnswer>> unscored(const std::string& owner, int limit) override {
    TRY_ASSIGN(Statement rows, select("WHERE owner=? AND id NOT IN (SELECT answer FROM scores) AND id NOT IN "
                                      "(SELECT answer FROM feedback WHERE kind IN ('up', 'down', 'rating', "
                                      "'correction')) ORDER BY id LIMIT ?"));
    rows.with(owner, int64_t{limit});
    return read(rows);
  }

  Result<std::vector<KeptAnswer>> find(const std::string& owner, const std::string& id) override {
    TRY_ASSIGN(Statement rows, select("WHERE owner=?1 AND (request_id=?2 OR answer_id=?2) ORDER BY id DESC LIMIT 1"));
    rows.with(owner, id);
    return read(rows);
  }

  Result<std::vector<std::string>> owners() override {
    std::vector<std::string> all;
    TRY_ASSIGN(Statement rows, database_.prepare("SELECT DISTINCT owner FROM answers ORDER BY owner"));
    for (;;) {
      TRY_ASSIGN(const bool has_row, rows.step());
      if (!has_row) return all;
      all.push_back(rows.text(0));
    }
  }

  Result<uint64_t> erase_answer(const std::string& owner, const std::string& id) override {
    return erase_where("(request_id=?2 OR answer_id=?2)", owner, id);
  }
  Result<uint64_t> erase_conversation(const std::string& owner, const std::string& conversation) override {
    return erase_where("conversation=?2", owner, conversation);
  }
  Result<uint64_t> erase(const std::string& owner) override { return erase_where("?2=''", owner, {}); }

  Result<uint64_t> prune(int64_t oldest, uint64_t owner_bytes) override {
    TRY_ASSIGN(Statement old, database_.prepare("DELETE FROM answers WHERE created<?"));
    TRY(old.with(oldest).run());
    TRY_ASSIGN(const int64_t removed, number(database_, "SELECT changes()"));
    // Of each owner the newest stay, as many as there is room for.
    TRY_ASSIGN(Statement much,
               database_.prepare("DELETE FROM answers WHERE id IN (SELECT id FROM (SELECT id, sum(bytes) OVER "
                                 "(PARTITION BY owner ORDER BY id DESC) AS upto FROM answers) WHERE upto>?)"));
    TRY(much.with(static_cast<int64_t>(owner_bytes)).run());
    TRY_ASSIGN(const int64_t more, number(database_, "SELECT changes()"));
    if (removed + more > 0) TRY(overwrite_erased());
    return static_cast<uint64_t>(removed + more);
  }

 private:
  Result<Statement> select(const char* which) const {
    return database_.prepare(std::string("SELECT ") + kAnswerColumns + " FROM answers " + which);
  }

  Result<std::optional<bool>> agreed_by(const std::string& owner) const {
    TRY_ASSIGN(Statement said, database_.prepare("SELECT agreed FROM agreements WHERE owner=?"));
    TRY_ASSIGN(const bool is_said, said.with(owner).step());
    return is_said ? std::optional<bool>(said.integer(0) != 0) : std::nullopt;
  }

  Status insert(const JournalRow& row) const {
    TRY_ASSIGN(Statement old, database_.prepare("DELETE FROM answers WHERE owner=? AND request_id=?"));
    TRY(old.with(row.owner, row.request_id).run());
    TRY_ASSIGN(
        Statement made,
        database_.prepare("INSERT INTO answers(owner, request_id, answer_id, conversation, created, model, route, "
                          "artefacts, sources, messages, answer, tool_calls, finish, prompt_tokens, "
                          "completion_tokens, milliseconds, bytes) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
    TRY(made.with(row.owner, row.request_id, row.answer_id, row.conversation, row.created, row.model, row.route,
                  row.artefacts, row.foreign, row.messages, row.answer, row.tool_calls, row.finish, row.prompt_tokens,
                  row.completion_tokens, row.milliseconds, row.bytes)
            .run());
    if (row.tools.empty()) return Ok{};
    TRY_ASSIGN(Statement offered, database_.prepare("INSERT INTO tools(answer, tools) VALUES(last_insert_rowid(), ?)"));
    return offered.with(row.tools).run();
  }

  Result<std::vector<KeptAnswer>> read(Statement& rows) const {
    std::vector<KeptAnswer> all;
    for (;;) {
      TRY_ASSIGN(const bool has_row, rows.step());
      if (!has_row) break;
      all.push_back(read_answer(rows));
    }
    TRY_ASSIGN(Statement said,
               database_.prepare("SELECT kind, at, rating, text FROM feedback WHERE answer=? ORDER BY id"));
    for (KeptAnswer& answer : all) {
      said.with(answer.id);
      for (;;) {
        TRY_ASSIGN(const bool has_row, said.step());
        if (!has_row) break;
        answer.feedback.push_back({said.text(0), said.integer(1), said.integer(2), said.text(3)});
      }
    }
    return all;
  }

  Result<uint64_t> erase_where(const char* condition, const std::string& owner, const std::string& value) const {
    TRY_ASSIGN(Statement rows, database_.prepare(std::string("DELETE FROM answers WHERE owner=?1 AND ") + condition));
    TRY(rows.with(owner, std::string_view(value)).run());
    TRY_ASSIGN(const int64_t n, number(database_, "SELECT changes()"));
    TRY(overwrite_erased());
    return static_cast<uint64_t>(n);
  }

  // SQLite's own journal has the text, too, until it is written back.
  Status overwrite_erased() const { return database_.execute("PRAGMA wal_checkpoint(TRUNCATE)"); }

  Database database_;
};

}  // namespace

Result<std::unique_ptr<JournalStore>> open_sqlite_journal(const std::string& path, std::chrono::milliseconds patience) {
  TRY_ASSIGN(Database database, open_database(path, Database::Mode::write, kJournalSchema));
  // What was erased is not to be found on the disk.
  TRY(database.execute("PRAGMA secure_delete=ON"));
  database.wait_at_most(patience);
  TRY(database.execute(kScoreTable));
  TRY(database.execute(kToolTable));
  return std::unique_ptr<JournalStore>(std::make_unique<SqliteJournal>(std::move(database)));
}

}  // namespace chimere::store

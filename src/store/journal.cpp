#include "store/journal.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "store/journal_rows.h"
#include "store/masking.h"

namespace chimere::store {
namespace {

constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kPruneSeconds = 3'600;

int64_t now_seconds() { return static_cast<int64_t>(std::time(nullptr)); }

constexpr std::pair<FeedbackKind, const char*> kKinds[] = {
    {FeedbackKind::thumb_up, "up"},
    {FeedbackKind::thumb_down, "down"},
    {FeedbackKind::no_thumb, "none"},
    {FeedbackKind::rating, "rating"},
    {FeedbackKind::correction, "correction"},
    {FeedbackKind::copied, "copied"},
    {FeedbackKind::regenerated, "regenerated"},
    {FeedbackKind::edited, "edited"},
};

bool is_thumb(FeedbackKind kind) {
  return kind == FeedbackKind::thumb_up || kind == FeedbackKind::thumb_down || kind == FeedbackKind::no_thumb;
}

}  // namespace

const char* feedback_name(FeedbackKind kind) {
  for (const auto& [known, name] : kKinds) {
    if (known == kind) return name;
  }
  return "";
}

int KeptAnswer::rating() const {
  constexpr int kGood = 5, kBad = 1, kCorrected = 2;
  for (auto said = feedback.rbegin(); said != feedback.rend(); ++said) {
    if (said->kind == "up") return kGood;
    if (said->kind == "down") return kBad;
    if (said->kind == "rating") return static_cast<int>(said->rating);
    if (said->kind == "correction") return kCorrected;
  }
  return 0;
}

const std::string* KeptAnswer::correction() const {
  for (auto said = feedback.rbegin(); said != feedback.rend(); ++said) {
    if (said->kind == "correction") return &said->text;
  }
  return nullptr;
}

Journal::Journal(Database database, Consent consent, JournalLimits limits)
    : consent_(consent), limits_(limits), database_(std::move(database)) {}

Result<std::shared_ptr<Journal>> Journal::open(const std::string& path, Consent consent, JournalLimits limits) {
  TRY_ASSIGN(Database database, open_database(path, Database::Mode::write, kJournalSchema));
  // What was erased is not to be found on the disk.
  TRY(database.execute("PRAGMA secure_delete=ON"));
  TRY(database.execute(kScoreTable));
  TRY(database.execute(kToolTable));
  std::shared_ptr<Journal> journal(new Journal(std::move(database), consent, limits));
  TRY(journal->load_agreements());
  TRY(journal->prune(now_seconds()));
  journal->writer_ = std::thread([&writes = *journal] { writes.write_waiting(); });
  return journal;
}

Journal::~Journal() {
  {
    const std::lock_guard lock(waiting_mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
}

Status Journal::load_agreements() {
  TRY_ASSIGN(Statement rows, database_.prepare("SELECT owner, agreed FROM agreements"));
  for (;;) {
    TRY_ASSIGN(const bool has_row, rows.step());
    if (!has_row) return Ok{};
    agreements_[rows.text(0)] = rows.integer(1) != 0;
  }
}

std::optional<bool> Journal::said_by(const std::string& owner) const {
  const std::lock_guard lock(asking_);
  const auto said = agreements_.find(owner);
  return said == agreements_.end() ? std::nullopt : std::optional<bool>(said->second);
}

bool Journal::keeps(const std::string& owner) const { return said_by(owner).value_or(consent_ == Consent::given); }

bool Journal::hears(const std::string& owner) const { return said_by(owner).value_or(true); }

void Journal::add(JournalAnswer answer) {
  if (!hears(answer.owner)) return;
  const uint64_t bytes = bytes_of(answer);
  if (!keeps(answer.owner)) return hold(std::move(answer), bytes);
  {
    const std::lock_guard lock(waiting_mutex_);
    if (bytes <= limits_.answer_bytes && waiting_bytes_ + bytes <= limits_.waiting_bytes) {
      waiting_bytes_ += bytes;
      waiting_.push_back(std::move(answer));
      changed_.notify_all();
      return;
    }
  }
  const std::lock_guard lock(asking_);
  ++counts_.dropped;
}

void Journal::hold(JournalAnswer answer, uint64_t bytes) {
  if (bytes > limits_.answer_bytes) return;
  const std::lock_guard lock(asking_);
  held_bytes_ += bytes;
  held_.push_back(std::move(answer));
  while (held_bytes_ > limits_.held_bytes) {
    held_bytes_ -= bytes_of(held_.front());
    held_.pop_front();
  }
}

// REQUIRES: asking_ is held.
std::vector<JournalAnswer> Journal::take_held(const std::string& owner) {
  std::vector<JournalAnswer> taken;
  for (auto answer = held_.begin(); answer != held_.end();) {
    if (answer->owner != owner) {
      ++answer;
      continue;
    }
    held_bytes_ -= bytes_of(*answer);
    taken.push_back(std::move(*answer));
    answer = held_.erase(answer);
  }
  return taken;
}

// The writer's thread: what came together is one transaction.
void Journal::write_waiting() {
  std::unique_lock lock(waiting_mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::vector<JournalAnswer> taken(std::make_move_iterator(waiting_.begin()),
                                     std::make_move_iterator(waiting_.end()));
    waiting_.clear();
    waiting_bytes_ = 0;
    is_writing_ = true;
    lock.unlock();
    const bool is_written = static_cast<bool>(write(taken));
    {
      const std::lock_guard counting(asking_);
      (is_written ? counts_.kept : counts_.failed) += taken.size();
    }
    lock.lock();
    is_writing_ = false;
    changed_.notify_all();
  }
}

void Journal::flush() {
  std::unique_lock lock(waiting_mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !is_writing_; });
}

Status Journal::write(const std::vector<JournalAnswer>& answers) {
  bool is_due = false;
  {
    const std::lock_guard lock(disk_);
    TRY_ASSIGN(Transaction transaction, Transaction::begin(database_, Database::Mode::write));
    for (const JournalAnswer& answer : answers) {
      // Who took the agreement back meanwhile has taken it back for these, too.
      if (keeps(answer.owner)) TRY(insert(answer));
    }
    TRY(transaction.commit());
    is_due = now_seconds() - pruned_at_ >= kPruneSeconds;
  }
  if (is_due) TRY(prune(now_seconds()));
  return Ok{};
}

Status Journal::insert(const JournalAnswer& answer) {
  TRY_ASSIGN(Statement old, database_.prepare("DELETE FROM answers WHERE owner=? AND request_id=?"));
  TRY(old.with(answer.owner, answer.request_id).run());
  const std::string messages = messages_json(answer.messages), calls = calls_json(answer.tool_calls);
  const std::string text = masked(answer.answer), tools = answer.tools.empty() ? "" : tools_json(answer.tools);
  TRY_ASSIGN(Statement row,
             database_.prepare("INSERT INTO answers(owner, request_id, answer_id, conversation, created, model, route, "
                               "artefacts, sources, messages, answer, tool_calls, finish, prompt_tokens, "
                               "completion_tokens, milliseconds, bytes) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  TRY(row.with(answer.owner, answer.request_id, answer.answer_id, conversation_of(answer.owner, answer.messages),
               answer.created, answer.model, answer.route, names_json(answer.artefacts), names_json(answer.foreign),
               messages, text, calls, answer.finish, int64_t{answer.prompt_tokens}, int64_t{answer.completion_tokens},
               static_cast<int64_t>(answer.seconds * 1000),
               static_cast<int64_t>(messages.size() + text.size() + calls.size() + tools.size()))
          .run());
  if (answer.tools.empty()) return Ok{};
  TRY_ASSIGN(Statement offered, database_.prepare("INSERT INTO tools(answer, tools) VALUES(last_insert_rowid(), ?)"));
  return offered.with(tools).run();
}

Status Journal::agree(const std::string& owner, bool agreed) {
  {
    const std::lock_guard lock(disk_);
    TRY_ASSIGN(Statement row,
               database_.prepare("INSERT INTO agreements(owner, agreed, at) VALUES(?,?,?) ON "
                                 "CONFLICT(owner) DO UPDATE SET agreed=excluded.agreed, at=excluded.at"));
    TRY(row.with(owner, int64_t{agreed}, now_seconds()).run());
  }
  std::vector<JournalAnswer> held;
  {
    const std::lock_guard lock(asking_);
    agreements_[owner] = agreed;
    held = take_held(owner);
  }
  if (agreed) {
    for (JournalAnswer& answer : held) add(std::move(answer));
  }
  return Ok{};
}

Result<JournalState> Journal::state(const std::string& owner) {
  flush();
  JournalState state;
  state.agreed = said_by(owner);
  const std::lock_guard lock(disk_);
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

Status Journal::give(const std::string& owner, const std::string& id, const Feedback& feedback) {
  flush();
  {
    const std::lock_guard lock(disk_);
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
      TRY(row.with(answer, now_seconds(), std::string_view(feedback_name(feedback.kind)), int64_t{feedback.rating},
                   masked(feedback.text))
              .run());
    }
    TRY(transaction.commit());
  }
  const std::lock_guard lock(asking_);
  ++counts_.feedback[feedback_name(feedback.kind)];
  return Ok{};
}

Result<std::vector<KeptAnswer>> Journal::read(Statement& rows) {
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

Result<std::vector<KeptAnswer>> Journal::list(const std::string& owner, int64_t before, int limit) {
  flush();
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(Statement rows, database_.prepare(std::string("SELECT ") + kAnswerColumns +
                                               " FROM answers WHERE owner=? AND id<? ORDER BY id DESC LIMIT ?"));
  rows.with(owner, before > 0 ? before : INT64_MAX, int64_t{limit});
  return read(rows);
}

Result<std::vector<KeptAnswer>> Journal::accepted(const std::string& owner, int limit) {
  flush();
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(
      Statement rows,
      database_.prepare(std::string("SELECT ") + kAnswerColumns +
                        " FROM answers WHERE owner=? AND sources='[]' AND tool_calls='[]' AND id IN (SELECT answer "
                        "FROM feedback WHERE kind IN ('up', 'rating', 'correction')) ORDER BY id DESC LIMIT ?"));
  rows.with(owner, int64_t{limit});
  TRY_ASSIGN(std::vector<KeptAnswer> all, read(rows));
  // What was said last counts.
  std::erase_if(all, [](const KeptAnswer& kept) {
    const bool is_corrected = std::any_of(kept.feedback.begin(), kept.feedback.end(), [](const KeptAnswer::Said& said) {
      return said.kind == feedback_name(FeedbackKind::correction);
    });
    return kept.rating() < 4 && !is_corrected;
  });
  return Result<std::vector<KeptAnswer>>{std::move(all)};
}

Result<std::vector<KeptAnswer>> Journal::unscored(const std::string& owner, int limit) {
  flush();
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(Statement rows,
             database_.prepare(std::string("SELECT ") + kAnswerColumns +
                               " FROM answers WHERE owner=? AND id NOT IN (SELECT answer FROM scores) AND id NOT IN "
                               "(SELECT answer FROM feedback WHERE kind IN ('up', 'down', 'rating', 'correction')) "
                               "ORDER BY id LIMIT ?"));
  rows.with(owner, int64_t{limit});
  return read(rows);
}

Status Journal::set_score(int64_t id, int score, const std::string& scorer, const std::string& reason) {
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(Statement row,
             database_.prepare("INSERT INTO scores(answer, at, score, scorer, reason) SELECT id, ?2, ?3, ?4, ?5 FROM "
                               "answers WHERE id=?1 ON CONFLICT(answer) DO UPDATE SET at=excluded.at, "
                               "score=excluded.score, scorer=excluded.scorer, reason=excluded.reason"));
  return row.with(id, now_seconds(), int64_t{score}, scorer, masked(reason)).run();
}

Result<std::optional<KeptAnswer>> Journal::find(const std::string& owner, const std::string& id) {
  flush();
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(Statement rows, database_.prepare(std::string("SELECT ") + kAnswerColumns +
                                               " FROM answers WHERE owner=?1 AND (request_id=?2 OR answer_id=?2) "
                                               "ORDER BY id DESC LIMIT 1"));
  rows.with(owner, id);
  TRY_ASSIGN(std::vector<KeptAnswer> found, read(rows));
  if (found.empty()) return std::optional<KeptAnswer>{};
  return std::optional<KeptAnswer>{std::move(found.front())};
}

Result<uint64_t> Journal::erase_where(const char* condition, const std::string& owner, const std::string& value) {
  flush();
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(Statement rows, database_.prepare(std::string("DELETE FROM answers WHERE owner=?1 AND ") + condition));
  TRY(rows.with(owner, std::string_view(value)).run());
  TRY_ASSIGN(const int64_t n, number(database_, "SELECT changes()"));
  // SQLite's own journal has the text, too, until it is written back.
  TRY(database_.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  return static_cast<uint64_t>(n);
}

Result<uint64_t> Journal::erase_answer(const std::string& owner, const std::string& id) {
  return erase_where("(request_id=?2 OR answer_id=?2)", owner, id);
}

Result<uint64_t> Journal::erase_conversation(const std::string& owner, const std::string& conversation) {
  return erase_where("conversation=?2", owner, conversation);
}

Result<uint64_t> Journal::erase(const std::string& owner) {
  {
    const std::lock_guard lock(asking_);
    take_held(owner);
  }
  return erase_where("?2=''", owner, {});
}

Result<std::vector<std::string>> Journal::owners() {
  flush();
  const std::lock_guard lock(disk_);
  std::vector<std::string> all;
  TRY_ASSIGN(Statement rows, database_.prepare("SELECT DISTINCT owner FROM answers ORDER BY owner"));
  for (;;) {
    TRY_ASSIGN(const bool has_row, rows.step());
    if (!has_row) return all;
    all.push_back(rows.text(0));
  }
}

Result<uint64_t> Journal::prune(int64_t now) {
  const std::lock_guard lock(disk_);
  pruned_at_ = now;
  int64_t removed = 0;
  if (limits_.days > 0) {
    TRY_ASSIGN(Statement old, database_.prepare("DELETE FROM answers WHERE created<?"));
    TRY(old.with(now - int64_t{limits_.days} * kDaySeconds).run());
    TRY_ASSIGN(removed, number(database_, "SELECT changes()"));
  }
  // Of each owner the newest stay, as many as there is room for.
  TRY_ASSIGN(Statement much,
             database_.prepare("DELETE FROM answers WHERE id IN (SELECT id FROM (SELECT id, sum(bytes) OVER (PARTITION "
                               "BY owner ORDER BY id DESC) AS upto FROM answers) WHERE upto>?)"));
  TRY(much.with(static_cast<int64_t>(limits_.owner_bytes)).run());
  TRY_ASSIGN(const int64_t more, number(database_, "SELECT changes()"));
  if (removed + more > 0) TRY(database_.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  return static_cast<uint64_t>(removed + more);
}

JournalCounts Journal::counts() const {
  const std::lock_guard lock(asking_);
  return counts_;
}

}  // namespace chimere::store

#include "store/journal.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <utility>

#include "store/journal_rows.h"
#include "store/journal_store.h"
#include "store/journal_url.h"
#include "store/masking.h"

namespace chimere::store {
namespace {

constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kPruneSeconds = 3'600;
constexpr std::chrono::seconds kLook{5};   // at agreements that others may have heard of
constexpr std::chrono::seconds kAgain{1};  // after a database that was away, or another's

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

// It may be over in a while: a lost connection, a full disk, a file that another process writes to.
bool may_pass(const Error& error, bool is_file) {
  return error.code == Code::exhausted || (error.code == Code::io && !is_file);
}

}  // namespace

bool is_thumb(FeedbackKind kind) {
  return kind == FeedbackKind::thumb_up || kind == FeedbackKind::thumb_down || kind == FeedbackKind::no_thumb;
}

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

Journal::Journal(std::string url, std::unique_ptr<JournalStore> store, Consent consent, JournalLimits limits)
    : url_(std::move(url)), consent_(consent), limits_(limits), store_(std::move(store)) {}

Result<std::shared_ptr<Journal>> Journal::open(const std::string& place, Consent consent, JournalLimits limits) {
  const bool is_url = is_journal_url(place);
  TRY_ASSIGN(auto store, is_url ? open_postgres_journal(place) : open_sqlite_journal(place, limits.patience));
  std::shared_ptr<Journal> journal(new Journal(is_url ? place : "", std::move(store), consent, limits));
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
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(const auto agreements, store_->agreements());
  heard(agreements);
  return Ok{};
}

// What is held of those who agreed is kept from now on; of those who refused it is gone.
void Journal::heard(const std::map<std::string, bool>& agreements) {
  std::vector<JournalAnswer> kept;
  {
    const std::lock_guard lock(asking_);
    for (const auto& [owner, agreed] : agreements) {
      const auto before = agreements_.find(owner);
      if (before != agreements_.end() && before->second == agreed) continue;
      agreements_[owner] = agreed;
      std::vector<JournalAnswer> held = take_held(owner);
      if (agreed) std::move(held.begin(), held.end(), std::back_inserter(kept));
    }
  }
  for (JournalAnswer& answer : kept) add(std::move(answer));
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
    if (is_away_) {
      changed_.wait_for(lock, kAgain, [&] { return ends_ || is_hurried_; });
      is_hurried_ = false;
    } else if (url_.empty()) {
      changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    } else if (!changed_.wait_for(lock, kLook, [&] { return ends_ || !waiting_.empty(); })) {
      lock.unlock();
      (void)load_agreements();
      lock.lock();
    }
    if (waiting_.empty()) {
      if (ends_) return;
      continue;
    }
    std::vector<JournalAnswer> taken(std::make_move_iterator(waiting_.begin()),
                                     std::make_move_iterator(waiting_.end()));
    waiting_.clear();
    n_writing_ = taken.size();
    lock.unlock();
    const Result<uint64_t> written = write(taken);
    note_written(written, std::move(taken));
    lock.lock();
  }
}

// What could not be written because the database is away waits on, but for what comes when all is over.
void Journal::note_written(const Result<uint64_t>& written, std::vector<JournalAnswer> answers) {
  const size_t n = answers.size();
  bool waits_on = false, was_away = false;
  {
    const std::lock_guard lock(waiting_mutex_);
    waits_on = !written && may_pass(written.error(), url_.empty()) && !ends_;
    was_away = std::exchange(is_away_, waits_on);
    n_writing_ = 0;
    ++n_tried_;
    if (waits_on) {
      waiting_.insert(waiting_.begin(), std::make_move_iterator(answers.begin()),
                      std::make_move_iterator(answers.end()));
    } else {
      for (const JournalAnswer& answer : answers) waiting_bytes_ -= bytes_of(answer);
      const std::lock_guard counting(asking_);
      if (written) counts_.kept += *written;
      if (!written) counts_.failed += n;
    }
    changed_.notify_all();
  }
  if (waits_on && !was_away) tell(written.error().message + "; answers that are to be kept wait in memory");
  if (!waits_on && !written) tell(written.error().message + "; " + std::to_string(n) + " answers were not kept");
  if (written && was_away) tell("the journal's database is back");
}

// Does not wait for a database that is away; a file that is another's is tried once more.
void Journal::flush() {
  std::unique_lock lock(waiting_mutex_);
  const uint64_t tried = n_tried_;
  const bool is_file = url_.empty();
  if (is_file && is_away_) {
    is_hurried_ = true;
    changed_.notify_all();
  }
  changed_.wait(lock,
                [&] { return (waiting_.empty() && n_writing_ == 0) || (is_away_ && (!is_file || n_tried_ != tried)); });
}

Result<uint64_t> Journal::write(const std::vector<JournalAnswer>& answers) {
  std::vector<JournalRow> rows;
  for (const JournalAnswer& answer : answers) rows.push_back(row_of(answer));
  bool is_due = false;
  uint64_t n = 0;
  {
    const std::lock_guard lock(disk_);
    TRY_ASSIGN(n, store_->write(rows, consent_ == Consent::ask));
    is_due = now_seconds() - pruned_at_ >= kPruneSeconds;
  }
  if (is_due && !prune(now_seconds())) tell("the journal: what is too old could not be erased");
  return n;
}

Status Journal::agree(const std::string& owner, bool agreed) {
  const std::lock_guard lock(disk_);
  TRY(store_->agree(owner, agreed, now_seconds()));
  heard({{owner, agreed}});
  return Ok{};
}

Result<JournalState> Journal::state(const std::string& owner) {
  flush();
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(const JournalState state, store_->state(owner));
  if (state.agreed) heard({{owner, *state.agreed}});
  return state;
}

Status Journal::give(const std::string& owner, const std::string& id, const Feedback& feedback) {
  flush();
  {
    const std::lock_guard lock(disk_);
    TRY(store_->give(owner, id, {feedback.kind, feedback.rating, masked(feedback.text)}, now_seconds()));
  }
  const std::lock_guard lock(asking_);
  ++counts_.feedback[feedback_name(feedback.kind)];
  return Ok{};
}

Result<std::vector<KeptAnswer>> Journal::list(const std::string& owner, int64_t before, int limit) {
  flush();
  const std::lock_guard lock(disk_);
  return store_->list(owner, before, limit);
}

Result<std::vector<KeptAnswer>> Journal::accepted(const std::string& owner, int limit) {
  flush();
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(std::vector<KeptAnswer> all, store_->accepted(owner, limit));
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
  return store_->unscored(owner, limit);
}

Status Journal::set_score(int64_t id, int score, const std::string& scorer, const std::string& reason) {
  const std::lock_guard lock(disk_);
  return store_->set_score(id, score, scorer, masked(reason), now_seconds());
}

Result<std::optional<KeptAnswer>> Journal::find(const std::string& owner, const std::string& id) {
  flush();
  const std::lock_guard lock(disk_);
  TRY_ASSIGN(std::vector<KeptAnswer> found, store_->find(owner, id));
  if (found.empty()) return std::optional<KeptAnswer>{};
  return std::optional<KeptAnswer>{std::move(found.front())};
}

Result<uint64_t> Journal::erase_answer(const std::string& owner, const std::string& id) {
  flush();
  const std::lock_guard lock(disk_);
  return store_->erase_answer(owner, id);
}

Result<uint64_t> Journal::erase_conversation(const std::string& owner, const std::string& conversation) {
  flush();
  const std::lock_guard lock(disk_);
  return store_->erase_conversation(owner, conversation);
}

Result<uint64_t> Journal::erase(const std::string& owner) {
  {
    const std::lock_guard lock(asking_);
    take_held(owner);
  }
  flush();
  const std::lock_guard lock(disk_);
  return store_->erase(owner);
}

Result<std::vector<std::string>> Journal::owners() {
  flush();
  const std::lock_guard lock(disk_);
  return store_->owners();
}

Result<uint64_t> Journal::prune(int64_t now) {
  const std::lock_guard lock(disk_);
  pruned_at_ = now;
  return store_->prune(limits_.days > 0 ? now - int64_t{limits_.days} * kDaySeconds : 0, limits_.owner_bytes);
}

JournalCounts Journal::counts() const {
  const std::lock_guard waiting(waiting_mutex_);
  const std::lock_guard lock(asking_);
  JournalCounts counts = counts_;
  counts.waiting = waiting_.size() + n_writing_;
  return counts;
}

void Journal::tell_of_trouble(std::function<void(const std::string&)> tell) {
  const std::lock_guard lock(asking_);
  tell_ = std::move(tell);
}

void Journal::tell(const std::string& what) const {
  const std::lock_guard lock(asking_);
  if (tell_) tell_(what);
}

std::unique_ptr<SharedJobs> Journal::shared_jobs() const {
  return url_.empty() ? nullptr : std::make_unique<SharedJobs>(url_);
}

Result<std::optional<RunLock>> Journal::lock_runs(std::chrono::seconds patience) const {
  if (url_.empty()) return std::optional<RunLock>(std::in_place);
  return RunLock::try_take(url_, patience);
}

}  // namespace chimere::store

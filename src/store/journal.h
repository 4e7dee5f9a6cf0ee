// journal.h  What was asked and answered, where its owner agreed to that, and what people said of it: what the system
// learns from.
//
//   answers    by owner: the conversation as it was sent, the answer, what took part; all text masked (masking.h)
//   feedback   on an answer: thumbs, a rating, a corrected text; what became of it (copied, regenerated, edited)
//   scores     1 to 5 of an answer, by checks and models in idle time; a person's word wins over them
//   agreements who agreed to be learned from, and who refused
//
// Nobody sees another owner's. It lies in a file (SQLite), where erased text is overwritten, or in PostgreSQL, which
// replicas share: what one of them hears of an agreement binds all at once, and lets them keep answers within seconds.
// Use it from any thread; all but keeps(), hears() and add() wait for the disk. While PostgreSQL is away, or another process
// keeps the file to itself, they fail, and what was added waits in memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "store/shared_jobs.h"

namespace chimere::store {

class JournalStore;

struct JournalLimits {
  int days = 365;                               // answers older than that go; 0: none do
  uint64_t owner_bytes = uint64_t{256} << 20;   // beyond it an owner's oldest go
  uint64_t answer_bytes = uint64_t{512} << 10;  // a larger one, with its conversation, is not kept
  uint64_t waiting_bytes = uint64_t{32} << 20;  // that the disk has not taken yet; what comes then is not kept
  uint64_t held_bytes = uint64_t{8} << 20;      // in memory, of owners who were not asked yet; the oldest go first
  uint64_t text_bytes = uint64_t{64} << 10;     // of one feedback
  std::chrono::milliseconds patience{10'000};   // of one try with another process that writes to the file
};

// One answer and how it came about.
struct JournalAnswer {
  std::string request_id;  // X-Request-Id; of two of one owner the later counts
  std::string answer_id;   // the one in its body; empty: it has none
  std::string owner;
  int64_t created = 0;  // seconds since 1970
  std::string model;
  std::string route;                   // that odo took; empty: the model answered alone
  std::vector<std::string> artefacts;  // "lora:NAME", "engram:NAME", "notes": what changed the model
  std::vector<std::string> foreign;    // "tool", "document", "web": texts that nobody here wrote took part
  std::vector<chat::Message> messages;
  std::string answer;
  std::vector<chat::ToolCall> tool_calls;
  std::vector<chat::Tool> tools;  // that could be called
  std::string finish;
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;
  double seconds = 0;
};

enum class FeedbackKind { thumb_up, thumb_down, no_thumb, rating, correction, copied, regenerated, edited };
const char* feedback_name(FeedbackKind kind);

struct Feedback {
  FeedbackKind kind = FeedbackKind::thumb_up;
  int rating = 0;    // 1 to 5, of `rating`
  std::string text;  // of `correction`
};

// An answer as it is kept.
struct KeptAnswer {
  int64_t id = 0;
  std::string request_id;
  std::string answer_id;
  std::string conversation;  // equal for the turns of one conversation
  int64_t created = 0;
  std::string model;
  std::string route;
  std::string artefacts;  // JSON arrays
  std::string foreign;
  std::string messages;
  std::string answer;
  std::string tool_calls;
  std::string tools;  // empty: there were none
  std::string finish;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t milliseconds = 0;
  struct Said {
    std::string kind;
    int64_t at = 0;
    int64_t rating = 0;
    std::string text;
  };
  std::vector<Said> feedback;
  int64_t scored = 0;  // 1 to 5, by a check or a model in idle time; 0: not yet
  std::string scorer;  // "sum", "json", "judge"
  std::string score_reason;

  // 1 to 5 by the last that a person said outright; 0: nobody did.
  int rating() const;
  // A person's word, else what was scored; 0: neither.
  int score() const { return rating() > 0 ? rating() : static_cast<int>(scored); }
  // The text that a person said would have been right, the last one; null: nobody did.
  const std::string* correction() const;
};

struct JournalState {
  std::optional<bool> agreed;  // what the owner said; none: was not asked yet
  uint64_t answers = 0;
  uint64_t bytes = 0;
  uint64_t feedback = 0;
  int64_t oldest = 0;  // when the first of them was given
};

struct JournalCounts {
  uint64_t kept = 0;
  uint64_t dropped = 0;  // too large, faster than the disk, or more than can wait for a database that is away
  uint64_t failed = 0;   // the disk refused them
  uint64_t waiting = 0;  // in memory
  std::map<std::string, uint64_t> feedback;
};

class Journal {
 public:
  enum class Consent { ask, given };  // of owners who said nothing: answers are kept once they agree, or at once

  // `place`: a file, which is made, or a URL of PostgreSQL (journal_url.h), whose tables are made.
  static Result<std::shared_ptr<Journal>> open(const std::string& place, Consent consent, JournalLimits limits = {});
  // Writes what waits, if that can be done now.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Replicas may share it: it is in PostgreSQL.
  bool is_shared() const { return !url_.empty(); }
  Consent consent() const { return consent_; }
  const JournalLimits& limits() const { return limits_; }
  // Whether answers to this owner are kept.
  bool keeps(const std::string& owner) const;
  // Whether add() has a use for them: they are kept, or held in memory until their owner has been asked, so that the
  // answer about which somebody first says something is not lost.
  bool hears(const std::string& owner) const;
  void add(JournalAnswer answer);

  // What is held of the owner is kept from then on, or gone. Who takes the agreement back keeps what is on the disk
  // until erase().
  Status agree(const std::string& owner, bool agreed);
  Result<JournalState> state(const std::string& owner);
  // `id`: a request's or an answer's. not_found: no answer of this owner is kept by that id.
  Status give(const std::string& owner, const std::string& id, const Feedback& feedback);
  // The newest first, those before the id `before` (0: from the newest on), at most `limit`.
  Result<std::vector<KeptAnswer>> list(const std::string& owner, int64_t before, int limit);
  // Of those that its owner rated 4 or 5, or corrected, and that no text of others took part in, the newest `limit`; newest first.
  Result<std::vector<KeptAnswer>> accepted(const std::string& owner, int limit);
  Result<std::optional<KeptAnswer>> find(const std::string& owner, const std::string& id);
  // Answers without a score and without a person's word, the oldest first, at most `limit`.
  Result<std::vector<KeptAnswer>> unscored(const std::string& owner, int limit);
  // 1 to 5. An answer that is gone meanwhile is none's concern.
  Status set_score(int64_t id, int score, const std::string& scorer, const std::string& reason);
  // One answer, or one conversation, or all; how many went.
  Result<uint64_t> erase_answer(const std::string& owner, const std::string& id);
  Result<uint64_t> erase_conversation(const std::string& owner, const std::string& conversation);
  Result<uint64_t> erase(const std::string& owner);
  // Who has answers here, by name.
  Result<std::vector<std::string>> owners();

  // Ends what is too old and too much, as of `now`; how many went. The journal does so itself, once an hour.
  Result<uint64_t> prune(int64_t now);
  JournalCounts counts() const;

  // Is told, on a thread of the journal, when the database is away, and when it is back.
  void tell_of_trouble(std::function<void(const std::string&)> tell);

  // Null: nobody shares this journal.
  std::unique_ptr<SharedJobs> shared_jobs() const;
  // For the one that may learn at a time, of all replicas; nullopt: another one does.
  Result<std::optional<RunLock>> lock_runs(std::chrono::seconds patience = {}) const;

 private:
  Journal(std::string url, std::unique_ptr<JournalStore> store, Consent consent, JournalLimits limits);
  void write_waiting();
  Result<uint64_t> write(const std::vector<JournalAnswer>& answers);
  void note_written(const Result<uint64_t>& written, std::vector<JournalAnswer> answers);
  void flush();
  Status load_agreements();
  void heard(const std::map<std::string, bool>& agreements);
  void hold(JournalAnswer answer, uint64_t bytes);
  std::vector<JournalAnswer> take_held(const std::string& owner);
  std::optional<bool> said_by(const std::string& owner) const;
  void tell(const std::string& what) const;

  const std::string url_;  // empty: it is a file
  const Consent consent_;
  const JournalLimits limits_;

  mutable std::mutex asking_;
  std::map<std::string, bool> agreements_;
  JournalCounts counts_;
  std::deque<JournalAnswer> held_;  // oldest first
  uint64_t held_bytes_ = 0;
  std::function<void(const std::string&)> tell_;

  std::mutex disk_;  // before the other two, where several are held
  const std::unique_ptr<JournalStore> store_;
  int64_t pruned_at_ = 0;

  mutable std::mutex waiting_mutex_;
  std::condition_variable changed_;
  std::deque<JournalAnswer> waiting_;
  uint64_t waiting_bytes_ = 0;  // of these, and of those that are being written
  size_t n_writing_ = 0;
  uint64_t n_tried_ = 0;     // to write what waited
  bool is_away_ = false;     // the database is; what waits is tried again
  bool is_hurried_ = false;  // somebody waits for that
  bool ends_ = false;
  std::thread writer_;
};

// The same for all turns of one conversation of one owner: of the texts up to the first answer.
std::string conversation_of(const std::string& owner, const std::vector<chat::Message>& messages);

}  // namespace chimere::store

// journal_store.h  What the journal asks of its database: SQLite's (sqlite_journal.cpp), for one machine, or PostgreSQL's
// (postgres_journal.cpp), for replicas on several. For this folder alone.
//
// One call at a time. Texts come masked. io and exhausted are errors that may pass.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/journal.h"
#include "store/journal_rows.h"

namespace chimere::store {

class JournalStore {
 public:
  virtual ~JournalStore() = default;

  // By owner.
  virtual Result<std::map<std::string, bool>> agreements() = 0;
  virtual Status agree(const std::string& owner, bool agreed, int64_t at) = 0;
  // All of them or none, but for those whose owner has refused, whoever heard that, before this is done; how many. With
  // `only_agreed`, but for those whose owner has not agreed. May be called again with rows that it may have written.
  virtual Result<uint64_t> write(const std::vector<JournalRow>& rows, bool only_agreed) = 0;
  virtual Result<JournalState> state(const std::string& owner) = 0;
  virtual Status give(const std::string& owner, const std::string& id, const Feedback& feedback, int64_t at) = 0;
  virtual Status set_score(int64_t id, int score, const std::string& scorer, const std::string& reason, int64_t at) = 0;

  // As the functions of Journal; `accepted` are all that somebody said something good of at some time.
  virtual Result<std::vector<KeptAnswer>> list(const std::string& owner, int64_t before, int limit) = 0;
  virtual Result<std::vector<KeptAnswer>> accepted(const std::string& owner, int limit) = 0;
  virtual Result<std::vector<KeptAnswer>> unscored(const std::string& owner, int limit) = 0;
  virtual Result<std::vector<KeptAnswer>> find(const std::string& owner, const std::string& id) = 0;
  virtual Result<std::vector<std::string>> owners() = 0;

  // How many answers went.
  virtual Result<uint64_t> erase_answer(const std::string& owner, const std::string& id) = 0;
  virtual Result<uint64_t> erase_conversation(const std::string& owner, const std::string& conversation) = 0;
  virtual Result<uint64_t> erase(const std::string& owner) = 0;
  // Those older than `oldest` (0: none is), and of each owner the oldest beyond `owner_bytes`.
  virtual Result<uint64_t> prune(int64_t oldest, uint64_t owner_bytes) = 0;
};

Result<std::unique_ptr<JournalStore>> open_sqlite_journal(const std::string& path, std::chrono::milliseconds patience);
Result<std::unique_ptr<JournalStore>> open_postgres_journal(const std::string& url);

}  // namespace chimere::store

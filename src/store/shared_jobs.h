// shared_jobs.h  Jobs of replicas that share a journal: one of the replicas leads, and it alone looks at the clock and does
// what is to be done; one process of all learns at a time.
//
// Both are advisory locks of the database, each held by a session of its own: they end with the process that has them,
// however that happens, and another one takes them. What is to be done stands in a table until it is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::store {

class PostgresConnection;

struct SharedJob {
  std::string kind, owner;
  bool operator==(const SharedJob&) const = default;
};

// Of one thread at a time; everything waits for the database.
class SharedJobs {
 public:
  explicit SharedJobs(std::string url);
  ~SharedJobs();

  // Whether this process leads now: it asked first, and has answered since.
  Result<bool> lead();
  // When each kind was last due.
  Result<std::map<std::string, int64_t>> times();
  // Sets that; with `for_all`, every owner of answers has a job of the kind to be done. REQUIRES: lead()
  Status set_time(const std::string& kind, int64_t at, bool for_all);
  // Asked for by somebody, at whatever replica.
  Status add(const SharedJob& job);
  Status remove(const SharedJob& job);
  // The oldest first.
  Result<std::vector<SharedJob>> waiting();

 private:
  Status connect();

  const std::string url_;
  std::unique_ptr<PostgresConnection> session_;
  bool leads_ = false;
};

// Is held until it ends, or its session does.
class RunLock {
 public:
  // Of a journal that nobody shares.
  RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

  // Nullopt: another process has it, and had it for all of `patience`. One that was killed has it for a moment more.
  static Result<std::optional<RunLock>> try_take(const std::string& url, std::chrono::seconds patience);
  // Asks the database, at most every few seconds unless `now` is said.
  bool is_held(bool now = false);

 private:
  std::unique_ptr<PostgresConnection> session_;  // null: there are no others
  std::chrono::steady_clock::time_point asked_;
};

}  // namespace chimere::store

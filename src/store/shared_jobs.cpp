#include "store/shared_jobs.h"

#include <thread>
#include <utility>

#include "store/postgres_schema.h"

namespace chimere::store {
namespace {

constexpr std::chrono::seconds kAskedAgain{5};
constexpr std::chrono::milliseconds kTriedAgain{200};

Result<bool> try_lock(PostgresConnection& session, const std::string& lock) {
  TRY_ASSIGN(const PostgresRows got, session.run(("SELECT pg_try_advisory_lock(" + lock + ")").c_str()));
  return got.flag(0, 0);
}

}  // namespace

SharedJobs::SharedJobs(std::string url) : url_(std::move(url)) {}
SharedJobs::~SharedJobs() = default;

Status SharedJobs::connect() {
  if (session_ && !session_->is_lost()) return Ok{};
  leads_ = false;
  session_.reset();
  TRY_ASSIGN(PostgresConnection opened, PostgresConnection::open(url_));
  session_ = std::make_unique<PostgresConnection>(std::move(opened));
  return Ok{};
}

Result<bool> SharedJobs::lead() {
  TRY(connect());
  if (leads_) {
    TRY(session_->run("SELECT 1"));
    return true;
  }
  TRY_ASSIGN(leads_, try_lock(*session_, kLeaderLock));
  return leads_;
}

Result<std::map<std::string, int64_t>> SharedJobs::times() {
  TRY(connect());
  TRY_ASSIGN(const PostgresRows rows, session_->run("SELECT kind, at FROM chimere_clock"));
  std::map<std::string, int64_t> times;
  for (int row = 0; row < rows.size(); ++row) times[rows.text(row, 0)] = rows.integer(row, 1);
  return times;
}

Status SharedJobs::set_time(const std::string& kind, int64_t at, bool for_all) {
  TRY(connect());
  // The session that leads is the one that writes: who has lost it changes nothing.
  if (!leads_) return Error{Code::io, "the journal's database: another replica leads"};
  TRY_ASSIGN(PostgresTransaction transaction, PostgresTransaction::begin(*session_));
  TRY(session_->run("INSERT INTO chimere_clock(kind, at) VALUES($1, $2) ON CONFLICT(kind) DO UPDATE SET at=excluded.at",
                    {as_value(kind), as_value(at)}));
  if (for_all) {
    TRY(
        session_->run("INSERT INTO chimere_jobs(kind, owner) SELECT $1::text, owner FROM (SELECT DISTINCT owner FROM "
                      "chimere_answers) AS owners ORDER BY owner ON CONFLICT DO NOTHING",
                      {as_value(kind)}));
  }
  return transaction.commit();
}

Status SharedJobs::add(const SharedJob& job) {
  TRY(connect());
  TRY(session_->run("INSERT INTO chimere_jobs(kind, owner) VALUES($1, $2) ON CONFLICT DO NOTHING",
                    {as_value(job.kind), as_owner(job.owner)}));
  return Ok{};
}

Status SharedJobs::remove(const SharedJob& job) {
  TRY(connect());
  TRY(session_->run("DELETE FROM chimere_jobs WHERE kind=$1 AND owner=$2", {as_value(job.kind), as_owner(job.owner)}));
  return Ok{};
}

Result<std::vector<SharedJob>> SharedJobs::waiting() {
  TRY(connect());
  TRY_ASSIGN(const PostgresRows rows, session_->run("SELECT kind, owner FROM chimere_jobs ORDER BY id"));
  std::vector<SharedJob> all;
  for (int row = 0; row < rows.size(); ++row) all.push_back({rows.text(row, 0), rows.text(row, 1)});
  return all;
}

RunLock::RunLock() = default;
RunLock::RunLock(RunLock&& other) noexcept = default;
RunLock::~RunLock() = default;

Result<std::optional<RunLock>> RunLock::try_take(const std::string& url, std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  RunLock lock;
  TRY_ASSIGN(PostgresConnection opened, PostgresConnection::open(url));
  lock.session_ = std::make_unique<PostgresConnection>(std::move(opened));
  for (;;) {
    TRY_ASSIGN(const bool is_ours, try_lock(*lock.session_, kRunLock));
    if (is_ours) break;
    if (std::chrono::steady_clock::now() >= until) return std::optional<RunLock>();
    std::this_thread::sleep_for(kTriedAgain);
  }
  lock.asked_ = std::chrono::steady_clock::now();
  return std::optional<RunLock>(std::move(lock));
}

bool RunLock::is_held(bool now) {
  if (!session_) return true;
  const auto time = std::chrono::steady_clock::now();
  if (session_->is_lost()) return false;
  if (!now && time - asked_ < kAskedAgain) return true;
  asked_ = time;
  return static_cast<bool>(session_->run("SELECT 1"));
}

}  // namespace chimere::store

#include "server/learning/shared_clock.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace chimere::server {
namespace {

constexpr std::chrono::seconds kLookEvery{2};

bool holds(const std::vector<store::SharedJob>& jobs, const store::SharedJob& job) {
  return std::find(jobs.begin(), jobs.end(), job) != jobs.end();
}

void drop(std::vector<store::SharedJob>& jobs, const std::vector<store::SharedJob>& told) {
  std::erase_if(jobs, [&](const store::SharedJob& job) { return holds(told, job); });
}

}  // namespace

SharedClock::SharedClock(std::unique_ptr<store::SharedJobs> jobs, improve::Schedule schedule)
    : jobs_(std::move(jobs)), schedule_(std::move(schedule)) {}

Result<SharedClock::Seen> SharedClock::look(store::SharedJobs& jobs, const improve::Schedule& schedule,
                                            const std::vector<store::SharedJob>& ended, int64_t now) {
  Seen seen;
  TRY_ASSIGN(seen.leads, jobs.lead());
  for (const store::SharedJob& job : ended) TRY(jobs.remove(job));
  TRY_ASSIGN(seen.times, jobs.times());
  if (!seen.leads) return Result<Seen>{std::move(seen)};
  for (const auto& [kind, when] : schedule) {
    const auto last = seen.times.find(kind);
    const int64_t due = last == seen.times.end() ? 0 : improve::due_after(when, last->second);
    const bool is_due = due > 0 && due <= now;
    // Of a kind that never ran, the next time counts, and not all those before it.
    if (last != seen.times.end() && !is_due) continue;
    TRY(jobs.set_time(kind, now, is_due));
    seen.times[kind] = now;
  }
  TRY_ASSIGN(seen.jobs, jobs.waiting());
  return Result<Seen>{std::move(seen)};
}

bool SharedClock::tick() {
  const auto now = std::chrono::steady_clock::now();
  if (!look_) {
    if (now - looked_ < kLookEvery) return false;
    looked_ = now;
    being_told_ = ended_;
    const auto work = [jobs = jobs_, schedule = schedule_, ended = ended_]() {
      return look(*jobs, schedule, ended, static_cast<int64_t>(std::time(nullptr)));
    };
    look_ = thread_.run<Seen>(work, [] {});
    return false;
  }
  auto seen = look_->poll();
  if (!seen) return false;
  look_.reset();
  if (!*seen) {
    // Who can not ask does not lead: another one may, from now on. What has ended meanwhile may have done so because of
    // that.
    seen_.leads = false;
    seen_.jobs.clear();
    ended_.clear();
    return true;
  }
  drop(ended_, being_told_);
  seen_ = std::move(**seen);
  // What has ended since it was asked is still in its answer.
  drop(seen_.jobs, ended_);
  return true;
}

void SharedClock::ended(const store::SharedJob& job) {
  if (!holds(ended_, job)) ended_.push_back(job);
  std::erase(seen_.jobs, job);
}

}  // namespace chimere::server

// shared_clock.h  When jobs are due, for replicas that share a journal: the one that leads begins them, and where it is gone
// another one leads and goes on with what is not done (store::SharedJobs).
//
// The database is asked every other second, on a thread of its own, which may wait as long as that takes. The rest is on the
// I/O thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "improve/schedule.h"
#include "server/http/workers.h"
#include "store/shared_jobs.h"

namespace chimere::server {

class SharedClock {
 public:
  SharedClock(std::unique_ptr<store::SharedJobs> jobs, improve::Schedule schedule);

  // About once a second. Whether something new was seen.
  bool tick();
  // As seen last: this process leads; jobs that are to be done, if it does; when each kind was last due.
  bool leads() const { return seen_.leads; }
  const std::vector<store::SharedJob>& jobs() const { return seen_.jobs; }
  const improve::LastTimes& times() const { return seen_.times; }

  // It is done, or can not be.
  void ended(const store::SharedJob& job);

 private:
  struct Seen {
    bool leads = false;
    std::vector<store::SharedJob> jobs;
    improve::LastTimes times;
  };
  static Result<Seen> look(store::SharedJobs& jobs, const improve::Schedule& schedule,
                           const std::vector<store::SharedJob>& ended, int64_t now);

  const std::shared_ptr<store::SharedJobs> jobs_;
  const improve::Schedule schedule_;
  Seen seen_;
  std::vector<store::SharedJob> ended_;       // what the database does not know yet
  std::vector<store::SharedJob> being_told_;  // the first of these
  std::chrono::steady_clock::time_point looked_{};
  std::unique_ptr<orchestrator::ServiceJob<Seen>> look_;
  Workers thread_{1};
};

}  // namespace chimere::server

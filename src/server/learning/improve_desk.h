// improve_desk.h  Learning beside a server: when jobs are due, one at a time, in a process of their own that stands still
// while people are answered.
//
// A job is `chimere improve run`, at the lowest priority, on the processor: its memory is its own, and whatever becomes of
// it, answers go on. Before a request is handled its process is asked to stand still (base/platform/stand_still.h), so that
// people wait for no step of it; it goes on when nobody has asked for a while. On the I/O thread, as far as nothing else is said.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/platform/child_process.h"
#include "improve/artefact_store.h"
#include "improve/in_use.h"
#include "improve/schedule.h"
#include "server/http/monitor.h"
#include "server/http/workers.h"
#include "server/learning/asked_jobs.h"
#include "server/learning/learned_adapters.h"
#include "server/learning/shared_clock.h"
#include "store/journal.h"

namespace chimere::orchestrator {
class ChatService;
}

namespace chimere::server {

struct ImproveConfig {
  std::shared_ptr<improve::InUse> in_use;  // null: nothing is learned here
  std::vector<std::string> command;        // of a job; its kind and --owner come behind
  // Of a job, "NAME=value" each, beside ours: what nobody may read in a list of processes.
  std::vector<std::string> environment;
  improve::Schedule schedule;
  std::chrono::seconds idle{30};   // without a request, before a job begins
  std::chrono::seconds resume{2};  // the same, before one goes on
};

struct ImproveCounts {
  uint64_t started = 0, ended = 0, failed = 0;  // processes
  uint64_t pauses = 0;
};

class ImproveDesk {
 public:
  // REQUIRES: config.in_use and journal. The monitor outlives it.
  ImproveDesk(ImproveConfig config, Monitor& monitor, orchestrator::ChatService& chat,
              std::shared_ptr<store::Journal> journal, std::shared_ptr<Workers> workers);

  // About once a second.
  void tick();
  // Somebody is about to be answered.
  void people_ask();
  void stop();

  // invalid_argument: no such kind, or it waits already. exhausted: too many wait. What it gives waits for the disk or the
  // database: once that is done, on a worker, the job outlives this process.
  Result<std::function<Status()>> ask_for(const std::string& kind, const std::string& owner);
  // Of an owner who is forgotten.
  void drop_waiting(const std::string& owner);
  // Ends a job that may be learning from what is to be forgotten; it goes on later.
  void end_job();

  struct State {
    std::string kind, owner;  // of the job under way; empty kind: none
    bool is_paused = false;
    size_t waiting = 0;  // behind it
  };
  State state() const;
  const ImproveConfig& config() const { return config_; }
  const ImproveCounts& counts() const { return counts_; }
  improve::InUse& in_use() { return *config_.in_use; }
  const std::shared_ptr<store::Journal>& journal() const { return journal_; }
  // When a kind is due next; 0: never.
  int64_t due(const std::string& kind) const;
  LearnedAdapters& adapters() { return adapters_; }

 private:
  Status add_waiting(const std::string& kind, const std::string& owner);
  std::function<Status()> to_keep();
  void keep();
  void look_at_clock();
  void look_at_shared_clock();
  void look_at_child();
  void start_next();
  bool people_are_there() const;
  std::string times_file() const;

  const ImproveConfig config_;
  Monitor& monitor_;
  orchestrator::ChatService& chat_;
  const std::shared_ptr<store::Journal> journal_;
  const std::shared_ptr<Workers> workers_;
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  improve::LastTimes last_;
  std::unique_ptr<SharedClock> shared_;  // null: nobody shares the journal
  std::deque<AskedJob> waiting_;
  std::optional<AskedJob> job_;
  const std::shared_ptr<AskedJobs> asked_jobs_;
  uint64_t n_changes_ = 0;  // of these
  std::optional<ChildProcess> child_;
  bool is_paused_ = false, is_stopping_ = false;
  std::map<std::string, int64_t> due_now_;  // kinds whose owners are being looked up, and for when
  std::unique_ptr<orchestrator::ServiceJob<std::vector<std::string>>> owners_;
  LearnedAdapters adapters_;
  ImproveCounts counts_;
};

}  // namespace chimere::server

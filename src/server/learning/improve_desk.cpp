#include "server/learning/improve_desk.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "improve/job.h"
#include "orchestrator/chat_service.h"

namespace chimere::server {
namespace {

constexpr size_t kMaxJobsWaiting = 256;

// Ours, but for those that are given.
std::vector<std::string> with_own_variables(std::vector<std::string> given) {
  const size_t n_given = given.size();
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view own = *variable;
    const std::string_view name = own.substr(0, own.find('=') + 1);
    const bool is_given = std::any_of(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(n_given),
                                      [&](const std::string& other) { return other.starts_with(name); });
    if (!is_given) given.emplace_back(own);
  }
  return given;
}

int64_t unix_now() { return static_cast<int64_t>(std::time(nullptr)); }

}  // namespace

ImproveDesk::ImproveDesk(ImproveConfig config, Monitor& monitor, orchestrator::ChatService& chat,
                         std::shared_ptr<store::Journal> journal, std::shared_ptr<Workers> workers)
    : config_(std::move(config)),
      monitor_(monitor),
      chat_(chat),
      journal_(std::move(journal)),
      workers_(std::move(workers)),
      asked_jobs_(std::make_shared<AskedJobs>(config_.in_use->store().folder() + "/asked.json")),
      adapters_(chat.adapters(), config_.in_use->store(), *workers_) {
  if (auto jobs = journal_->shared_jobs()) {
    shared_ = std::make_unique<SharedClock>(std::move(jobs), config_.schedule);
    return;
  }
  last_ = improve::read_last_times(times_file());
  // What was asked for before this process began, and did not come to its end.
  auto asked = asked_jobs_->read();
  if (!asked) spdlog::warn("{}", asked.error().message);
  if (asked) waiting_.assign(asked->begin(), asked->end());
  // Of a kind that never ran, the next time counts, and not all those before it.
  for (const auto& [kind, when] : config_.schedule) last_.emplace(kind, unix_now());
}

std::string ImproveDesk::times_file() const { return config_.in_use->store().folder() + "/clock.json"; }

int64_t ImproveDesk::due(const std::string& kind) const {
  const auto when = config_.schedule.find(kind);
  const auto last = last_.find(kind);
  if (when == config_.schedule.end() || last == last_.end()) return 0;
  return improve::due_after(when->second, last->second);
}

bool ImproveDesk::people_are_there() const {
  const auto& records = monitor_.records();
  return std::any_of(records.begin(), records.end(),
                     [](const RequestRecord* record) { return record->can_be_cancelled(); });
}

void ImproveDesk::people_ask() {
  asked_ = std::chrono::steady_clock::now();
  if (!child_ || is_paused_) return;
  child_->pause();
  is_paused_ = true;
  ++counts_.pauses;
}

// What waits stands on the disk for the next one.
void ImproveDesk::stop() {
  is_stopping_ = true;
  end_job();
}

void ImproveDesk::end_job() {
  if (child_) child_->kill();
  child_.reset();
  // What it has computed is on the disk: it goes on when its turn comes again.
  if (job_ && !is_stopping_) waiting_.push_front(std::move(*job_));
  job_.reset();
  is_paused_ = false;
}

Result<std::function<Status()>> ImproveDesk::ask_for(const std::string& kind, const std::string& owner) {
  TRY(add_waiting(kind, owner));
  if (!shared_) return to_keep();
  return std::function<Status()>([journal = journal_, kind, owner] {
    return journal->shared_jobs()->add({kind, owner});
  });
}

void ImproveDesk::drop_waiting(const std::string& owner) {
  std::erase_if(waiting_, [&](const AskedJob& job) { return job.owner == owner; });
  keep();
}

// All that is to be done, as of now. Another thread writes it.
std::function<Status()> ImproveDesk::to_keep() {
  std::vector<AskedJob> jobs(waiting_.begin(), waiting_.end());
  if (job_) jobs.insert(jobs.begin(), *job_);
  return [file = asked_jobs_, serial = ++n_changes_, jobs = std::move(jobs)] { return file->write(serial, jobs); };
}

void ImproveDesk::keep() {
  if (shared_) return;
  workers_->post([write = to_keep()] {
    if (const Status kept = write(); !kept) spdlog::warn("{}", kept.error().message);
  });
}

Status ImproveDesk::add_waiting(const std::string& kind, const std::string& owner) {
  const auto& kinds = improve::job_kinds();
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    return Error{Code::invalid_argument,
                 "kind: expected one of " + improve::kind_names() + ", found '" + kind.substr(0, 40) + "'"};
  }
  if (shared_) return Ok{};
  const auto is_same = [&](const AskedJob& job) { return job.kind == kind && job.owner == owner; };
  if ((job_ && is_same(*job_)) || std::any_of(waiting_.begin(), waiting_.end(), is_same)) {
    return Error{Code::invalid_argument, "kind: this job waits already"};
  }
  if (waiting_.size() >= kMaxJobsWaiting) return Error{Code::exhausted, "too many jobs wait already"};
  waiting_.push_back({kind, owner});
  return Ok{};
}

ImproveDesk::State ImproveDesk::state() const {
  State state;
  if (job_) state = {job_->kind, job_->owner, is_paused_, 0};
  state.waiting = waiting_.size();
  return state;
}

void ImproveDesk::tick() {
  if (is_stopping_) return;
  look_at_child();
  adapters_.tick();
  shared_ ? look_at_shared_clock() : look_at_clock();
  const auto quiet = std::chrono::steady_clock::now() - asked_;
  if (people_are_there()) {
    people_ask();
  } else if (child_ && is_paused_ && quiet >= config_.resume) {
    is_paused_ = false;
    child_->resume();
  } else if (child_ && !is_paused_) {
    // One that was about to stand still when it was told to go on.
    child_->resume();
  } else if (!child_ && quiet >= config_.idle) {
    start_next();
  }
}

// Owners are looked up on a worker, since that waits for the disk.
void ImproveDesk::look_at_clock() {
  if (owners_) {
    const auto found = owners_->poll();
    if (!found) return;
    owners_.reset();
    for (const auto& [kind, at] : std::exchange(due_now_, {})) {
      if (!*found) continue;
      for (const std::string& owner : **found) {
        (void)add_waiting(kind, owner);
      }
      last_[kind] = std::max(at, last_[kind]);
    }
    if (*found) {
      // In this order: ended between the two, they are asked for once more.
      workers_->post([keep = to_keep(), file = times_file(), times = last_] {
        Status saved = keep();
        if (saved) saved = improve::write_last_times(file, times);
        if (!saved) spdlog::warn("{}", saved.error().message);
      });
    }
    return;
  }
  const int64_t now = unix_now();
  for (const auto& [kind, when] : config_.schedule) {
    const int64_t at = due(kind);
    if (at > 0 && at <= now) due_now_[kind] = now;
  }
  if (due_now_.empty()) return;
  owners_ = workers_->run<std::vector<std::string>>([journal = journal_] { return journal->owners(); }, [] {});
}

// What is to be done is what the database says, as long as this process leads. A job whose replica leads no more ends: the
// one that leads now goes on with it.
void ImproveDesk::look_at_shared_clock() {
  if (!shared_->tick()) return;
  last_ = shared_->times();
  if (job_ && !shared_->leads()) end_job();
  waiting_.clear();
  for (const store::SharedJob& job : shared_->jobs()) {
    const bool is_running = job_ && job_->kind == job.kind && job_->owner == job.owner;
    if (!is_running) waiting_.push_back({job.kind, job.owner});
  }
}

void ImproveDesk::look_at_child() {
  if (!child_) return;
  std::string output, error;
  const auto now = std::chrono::steady_clock::now();
  (void)child_->read_some(output, error, now);
  const auto exit = child_->wait(now);
  if (!exit) return;
  ++counts_.ended;
  if (exit->is_success()) {
    spdlog::info("improve {}: done", job_->kind);
  } else {
    ++counts_.failed;
    spdlog::warn("improve {}: {} {}", job_->kind, describe(*exit), error.substr(0, 400));
  }
  if (shared_) shared_->ended({job_->kind, job_->owner});
  child_.reset();
  job_.reset();
  is_paused_ = false;
  keep();
}

void ImproveDesk::start_next() {
  if (waiting_.empty() || child_) return;
  job_ = std::move(waiting_.front());
  waiting_.pop_front();
  std::vector<std::string> arguments = config_.command;
  arguments.insert(arguments.end(), {job_->kind, "--owner", job_->owner});
  ChildOptions options;
  if (!config_.environment.empty()) options.environment = with_own_variables(config_.environment);
  auto child = ChildProcess::start(arguments, options);
  if (!child) {
    if (shared_) shared_->ended({job_->kind, job_->owner});
    ++counts_.failed;
    spdlog::warn("improve {}: {}", job_->kind, child.error().message);
    job_.reset();
    keep();
    return;
  }
  ++counts_.started;
  child_.emplace(std::move(*child));
  child_->close_input();
  is_paused_ = false;
}

}  // namespace chimere::server

// model_shelf.cpp  The line of those who wait, and the thread that serves it.
#include "server/shelf/model_shelf.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace chimere::server {
namespace {

constexpr std::chrono::seconds kLookAgain{2};  // at the earliest
constexpr std::chrono::seconds kIdleCheck{1};

}  // namespace

ModelShelf::Lease::~Lease() {
  if (model_) shelf_->give_back(*model_, is_use_);
}

ModelMemory memory_of(const orchestrator::ChatService& service, uint64_t state_bytes) {
  ModelMemory memory{state_bytes, 0};
  for (const auto& [purpose, bytes] : service.engine().stats().memory) {
    if (purpose == "weights" || purpose == "activations") memory.ram += bytes;
  }
  return memory;
}

ModelShelf::ModelShelf(std::function<std::vector<ModelFile>()> find, Load load, ShelfLimits limits, Plan plan)
    : find_(std::move(find)),
      load_(std::move(load)),
      limits_(limits),
      plan_(std::move(plan)),
      files_(find_()),
      looked_(Clock::now()) {
  thread_ = std::thread([this] { run(); });
}

ModelShelf::~ModelShelf() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// The lock is open meanwhile: a folder may be on a slow disk.
void ModelShelf::look_again(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::vector<ModelFile> files = find_();
  lock.lock();
  files_ = std::move(files);
  looked_ = Clock::now();
  wants_look_ = false;
}

void ModelShelf::list(const std::function<void(const Listed&)>& look) {
  const std::lock_guard lock(mutex_);
  wants_look_ = true;
  for (const ModelFile& file : files_) {
    Listed listed;
    listed.file = file;
    const auto entry = entries_.find(file.name);
    const auto problem = problems_.find(file.name);
    if (entry != entries_.end()) {
      listed.state = State::loaded;
      listed.service = entry->second.model->service.get();
      listed.users = entry->second.users;
      listed.memory = entry->second.model->memory;
      listed.has_new_options = entry->second.model->file.options != file.options;
      listed.file.options = entry->second.model->file.options;
    } else if (loading_ == file.name) {
      listed.state = State::loading;
      listed.progress = progress_;
    } else if (problem != problems_.end()) {
      listed.state = State::failed;
      listed.problem = problem->second;
    }
    look(listed);
  }
}

std::optional<ModelFile> ModelShelf::find_locked(const std::string& name) {
  for (const ModelFile& file : files_) {
    if (file.name == name) return file;
  }
  wants_look_ = true;  // it may have come since
  return std::nullopt;
}

std::optional<ModelFile> ModelShelf::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return find_locked(name);
}

ModelShelf::Lease ModelShelf::lease_of(Entry& entry, bool is_use) {
  ++entry.users;
  if (is_use) entry.last_used = Clock::now();
  return Lease(*this, entry.model, is_use);
}

void ModelShelf::give_back(const Loaded& model, bool is_use) {
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(model.file.name);
    if (entry != entries_.end()) {
      --entry->second.users;
      if (is_use) entry->second.last_used = Clock::now();
    }
  }
  changed_.notify_all();
}

std::shared_ptr<ModelShelf::Ticket> ModelShelf::ask(const std::string& name, std::function<void()> wake,
                                                    std::optional<std::chrono::seconds> keep) {
  auto ticket = std::make_shared<Ticket>(std::move(wake));
  std::optional<Lease> now;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(name);
    if (entry != entries_.end() && !entry->second.is_leaving) {
      if (keep) entry->second.keep = keep;
      now.emplace(lease_of(entry->second, true));
    } else {
      waiting_.push_back({name, ticket, keep});
    }
  }
  if (now) {
    ticket->put(std::move(*now));
  } else {
    changed_.notify_all();
  }
  return ticket;
}

std::optional<ModelShelf::Lease> ModelShelf::latest() {
  const std::lock_guard lock(mutex_);
  const auto latest = std::max_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return a.second.last_used < b.second.last_used;
  });
  if (latest == entries_.end()) return std::nullopt;
  return lease_of(latest->second, false);
}

std::optional<ModelShelf::Lease> ModelShelf::use(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return std::nullopt;
  return lease_of(entry->second, true);
}

std::vector<ModelShelf::Lease> ModelShelf::loaded() {
  const std::lock_guard lock(mutex_);
  std::vector<Lease> leases;
  for (auto& [name, entry] : entries_) leases.push_back(lease_of(entry, false));
  return leases;
}

bool ModelShelf::unload(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(name);
    if (entry == entries_.end()) return false;
    entry->second.is_leaving = true;
  }
  changed_.notify_all();
  return true;
}

void ModelShelf::run() {
  std::unique_lock lock(mutex_);
  while (!stops_) {
    drop_idle(lock);
    if (wants_look_ && Clock::now() - looked_ >= kLookAgain) look_again(lock);
    if (!waiting_.empty()) {
      serve_first(lock);
    } else {
      changed_.wait_for(lock, kIdleCheck);
    }
  }
  for (Waiting& waiting : waiting_) waiting.ticket->put(Error{Code::cancelled, "the server is stopping"});
  waiting_.clear();
  while (!entries_.empty()) take_down(lock, entries_.begin()->first);
}

bool ModelShelf::is_over(const Entry& entry) const {
  const auto idle = Clock::now() - entry.last_used;
  if (entry.keep) return *entry.keep != std::chrono::seconds::max() && idle >= *entry.keep;
  return limits_.idle_unload.count() > 0 && idle > limits_.idle_unload;
}

// Those whose time is over, and those that were told to go.
void ModelShelf::drop_idle(std::unique_lock<std::mutex>& lock) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (entry.users == 0 && (entry.is_leaving || is_over(entry))) names.push_back(name);
  }
  for (const std::string& name : names) take_down(lock, name);
}

// Waits for its answers; then it is gone. Freeing takes its time, so the lock is open meanwhile.
void ModelShelf::take_down(std::unique_lock<std::mutex>& lock, const std::string& name) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return;
  entry->second.is_leaving = true;
  changed_.wait(lock, [&] { return entry->second.users == 0; });
  std::shared_ptr<Loaded> model = std::move(entry->second.model);
  entries_.erase(entry);
  lock.unlock();
  model->attached.reset();
  spdlog::info("{} is unloaded", model->file.name);
  model.reset();
  lock.lock();
}

ModelMemory ModelShelf::expected_of(const ModelFile& file) const {
  const auto seen = seen_.find(file.name);
  const bool is_same = seen != seen_.end() && seen->second.first.path == file.path &&
                       seen->second.first.bytes == file.bytes && seen->second.first.written == file.written &&
                       seen->second.first.options == file.options;
  if (is_same) return seen->second.second;
  return plan_ ? plan_(file) : ModelMemory();
}

bool ModelShelf::fits(const ModelFile& file, const ModelMemory& memory) const {
  uint64_t bytes = file.bytes;
  ModelMemory all = memory;
  for (const auto& [name, entry] : entries_) {
    bytes += entry.model->file.bytes;
    all.ram += entry.model->memory.ram;
    all.vram += entry.model->memory.vram;
  }
  const auto is_within = [](uint64_t found, uint64_t most) { return most == 0 || found <= most; };
  const bool has_place = limits_.count == 0 || static_cast<int>(entries_.size()) < limits_.count;
  return has_place && is_within(bytes, limits_.bytes) && is_within(all.ram, limits_.memory.ram) &&
         is_within(all.vram, limits_.memory.vram);
}

Error ModelShelf::too_large(const ModelFile& file, const ModelMemory& memory) const {
  const auto say = [&](const char* what, uint64_t found, uint64_t most, const char* advice) {
    return Error{Code::exhausted, "model '" + file.name + "' " + what + " " + std::to_string(found >> 20) +
                                      " MiB, and models may have " + std::to_string(most >> 20) +
                                      " MiB together: start the server with " + advice};
  };
  if (limits_.bytes > 0 && file.bytes > limits_.bytes) {
    return say("has", file.bytes, limits_.bytes, "a larger --models-gb");
  }
  if (limits_.memory.ram > 0 && memory.ram > limits_.memory.ram) {
    return say("needs, with its states,", memory.ram, limits_.memory.ram, "a larger --ram, or a smaller --state-gb");
  }
  return say("needs, with its states,", memory.vram, limits_.memory.vram, "a larger --vram, or a smaller --state-gb");
}

// False: it would not fit alone.
bool ModelShelf::make_room(std::unique_lock<std::mutex>& lock, const ModelFile& file, const ModelMemory& memory) {
  while (!stops_ && !fits(file, memory)) {
    if (entries_.empty()) return false;
    const auto first_to_go = [](const auto& a, const auto& b) {
      const bool a_busy = a.second.users > 0, b_busy = b.second.users > 0;
      return a_busy != b_busy ? b_busy : a.second.last_used < b.second.last_used;
    };
    take_down(lock, std::min_element(entries_.begin(), entries_.end(), first_to_go)->first);
  }
  return true;
}

// To all who wait for it. The lock is open meanwhile: a lease that nobody takes any more comes back at once.
void ModelShelf::deliver(std::unique_lock<std::mutex>& lock, const std::string& name, const Error* error) {
  const auto entry = entries_.find(name);
  std::vector<std::pair<std::shared_ptr<Ticket>, Result<Lease>>> results;
  for (Waiting& waiting : waiting_) {
    if (waiting.name != name) continue;
    if (!error && waiting.keep) entry->second.keep = waiting.keep;
    if (error) {
      results.emplace_back(std::move(waiting.ticket), *error);
    } else {
      results.emplace_back(std::move(waiting.ticket), lease_of(entry->second, true));
    }
  }
  std::erase_if(waiting_, [](const Waiting& waiting) { return !waiting.ticket; });
  lock.unlock();
  for (auto& [ticket, result] : results) ticket->put(std::move(result));
  results.clear();
  lock.lock();
}

void ModelShelf::refuse(std::unique_lock<std::mutex>& lock, const std::string& name, const Error& error) {
  problems_[name] = error.message;
  spdlog::error("{} can not be loaded: {}", name, error.message);
  deliver(lock, name, &error);
}

void ModelShelf::serve_first(std::unique_lock<std::mutex>& lock) {
  std::erase_if(waiting_, [](const Waiting& waiting) { return waiting.ticket->is_cancelled(); });
  if (waiting_.empty()) return;
  const std::string name = waiting_.front().name;
  if (const auto entry = entries_.find(name); entry != entries_.end()) {
    if (entry->second.is_leaving) take_down(lock, name);
    if (entries_.count(name) > 0) return deliver(lock, name, nullptr);
  }
  const std::optional<ModelFile> file = find_locked(name);
  if (!file) {
    const Error gone{Code::not_found, "model '" + name + "' is no longer in its folder"};
    return deliver(lock, name, &gone);
  }
  const ModelMemory share = expected_of(*file);
  if (!make_room(lock, *file, share)) return refuse(lock, name, too_large(*file, share));
  if (stops_) return;
  loading_ = name;
  progress_ = 0;
  lock.unlock();
  const auto began = Clock::now();
  auto opened = load_(*file, share, [this](uint64_t done, uint64_t total) {
    const std::lock_guard inner(mutex_);
    progress_ = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  });
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  lock.lock();
  if (!opened) {
    loading_.clear();
    // Its share of the card was too small: the next round gives it all.
    if (opened.error().code == Code::exhausted && share.vram < limits_.memory.vram) {
      seen_[name] = {*file, {share.ram, limits_.memory.vram}};
      return;
    }
    return refuse(lock, name, opened.error());
  }
  // What it takes is known now, and may be more than its file told.
  seen_[name] = {*file, opened->memory};
  const bool has_room = make_room(lock, *file, opened->memory);
  loading_.clear();
  if (!has_room || stops_) {
    lock.unlock();
    opened->service.reset();
    lock.lock();
    return has_room ? void() : refuse(lock, name, too_large(*file, opened->memory));
  }
  problems_.erase(name);
  spdlog::info("{} is loaded, in {:.1f} s", name, seconds);
  auto model = std::make_shared<Loaded>();
  model->file = *file;
  model->memory = opened->memory;
  model->service = std::move(opened->service);
  entries_[name] = {std::move(model), 0, false, std::nullopt, Clock::now()};
  deliver(lock, name, nullptr);
}

}  // namespace chimere::server

// batch_runner.cpp  One batch at a time: opened, its requests asked, their results saved, ended.
#include "server/batch/batch_runner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "server/http/json.h"

namespace chimere::server {
namespace {

constexpr int kAtOnce = 4;
constexpr int kMaxTries = 5;
// The engine hears that an answer is given up within a step, gives its place to another in the next, and says so.
constexpr uint64_t kStepsToLeave = 3;

// Those who find no room come again; so do those whom a stop has ended. A model that takes more than all there is will
// not fit later, either.
bool is_worth_another_try(const HttpResponse& response) {
  if (response.status != 429 && response.status != 503) return false;
  const auto body = parse_json(response.body);
  const bool has_words = body && body->is_object() && body->contains("error") && (*body)["error"].is_object();
  return !has_words || (*body)["error"].value("param", Json()) != "model";
}

std::string new_line_id() { return "batch_req_" + random_key().substr(3, 24); }

std::string result_line(const std::string& id, const std::string& custom_id, Json response, Json error) {
  const Json line{{"id", id}, {"custom_id", custom_id}, {"response", std::move(response)}, {"error", std::move(error)}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

BatchResult result_of(const std::string& custom_id, const std::string& request_id, const HttpResponse& response) {
  auto body = parse_json(response.body);
  const bool is_success = response.status == 200;
  Json error;
  if (!is_success) {
    const bool has_words = body && body->is_object() && body->contains("error") && (*body)["error"].is_object();
    error = {{"code", has_words ? (*body)["error"].value("code", Json()) : Json()},
             {"message", has_words ? (*body)["error"].value("message", Json()) : Json("the request failed")}};
  }
  Json answer{{"status_code", response.status}, {"request_id", request_id}, {"body", body ? std::move(*body) : Json()}};
  return {is_success, result_line(request_id, custom_id, std::move(answer), std::move(error))};
}

// Of a request that was never made.
BatchResult refused(const std::string& custom_id, const char* code, const std::string& message) {
  return {false, result_line(new_line_id(), custom_id, {}, {{"code", code}, {"message", message}})};
}

}  // namespace

BatchRunner::BatchRunner(Means means, BatchHouse& house, Wake wake)
    : means_(std::move(means)), house_(house), wake_(std::move(wake)) {
  means_.store->watch([changed = store_changed_, ring = wake_] {
    changed->store(true);
    ring();
  });
  house_.tell_ends([this] {
    if (!waiting_.empty()) wake_();
  });
  wake_();  // batches of an earlier start
}

BatchRunner::~BatchRunner() {
  means_.store->watch({});
  house_.tell_ends({});
}

void BatchRunner::look(bool is_tick) {
  if (store_changed_->exchange(false) || is_tick) is_due_ = true;
  if (is_tick) is_resting_ = false;
  if (is_stopping_ || !has_batch()) return;
  read_answers();
  save();
  if (ending_) return;
  if (batch_->is_expired()) {
    expire();
  } else {
    give_way_or_start(is_tick);
  }
  if (!running_.empty() || !waiting_.empty() || !results_.empty() || saving_) return;
  if (is_postponed_) {
    batch_.reset();
    is_due_ = true;
    return wake_();
  }
  end(batch_->status == "cancelling" ? "cancelled" : has_expired_ ? "expired" : "completed");
}

bool BatchRunner::has_batch() {
  if (ending_) {
    const auto ended = ending_->poll();
    if (!ended) return false;
    if (!*ended) spdlog::error("{}: {}", batch_->id, ended->error().message);
    ending_.reset();
    batch_.reset();
    is_due_ = true;
  }
  if (batch_) return true;
  if (opening_) return take_opened();
  look_for_batch();
  return false;
}

// The oldest of those that may run. One that is to end needs no leave for that.
void BatchRunner::look_for_batch() {
  if (!listing_) {
    if (!std::exchange(is_due_, false)) return;
    listing_ = means_.workers->run<std::vector<Batch>>(
        [store = means_.store]() -> Result<std::vector<Batch>> { return store->open_batches(); }, wake_);
    return;
  }
  const auto listed = listing_->poll();
  if (!listed) return;
  listing_.reset();
  if (is_due_) wake_();  // it has changed meanwhile
  if (!*listed) return;
  const auto next = std::find_if((*listed)->begin(), (*listed)->end(), [&](const Batch& batch) {
    return batch.status == "cancelling" || batch.is_expired() || may_run(batch);
  });
  if (next == (*listed)->end()) return;
  const auto open = [store = means_.store, owner = next->owner, id = next->id]() -> Result<Opened> {
    Opened opened;
    auto lines = store->begin(owner, id);
    if (lines) {
      opened.lines = std::move(*lines);
    } else {
      spdlog::error("{}: {}", id, lines.error().message);
      TRY(store->end(owner, id, "failed", without_folders(lines.error().message)));
    }
    opened.batch = store->batch(owner, id);
    return Result<Opened>{std::move(opened)};
  };
  opening_ = means_.workers->run<Opened>(open, wake_);
}

bool BatchRunner::take_opened() {
  auto opened = opening_->poll();
  if (!opened) return false;
  opening_.reset();
  if (!*opened) {
    spdlog::error("a batch could not be opened: {}", opened->error().message);
    return false;
  }
  if (!(*opened)->batch || !(*opened)->batch->is_open()) {
    is_due_ = true;
    wake_();
    return false;
  }
  batch_ = std::move((*opened)->batch);
  has_expired_ = is_postponed_ = false;
  if (batch_->status == "cancelling") return true;
  for (BatchLine& line : (*opened)->lines) {
    if (line.problem.empty()) {
      Waiting& waiting = waiting_.emplace_back(Waiting{std::move(line), {}});
      waiting.model = house_.model_of(request_of(waiting, {}));
    } else {
      add_result(refused(line.custom_id, "invalid_request", line.problem));
    }
  }
  return true;
}

// Its key may have been taken away since.
bool BatchRunner::may_run(const Batch& batch) const {
  return means_.access->has_client(batch.owner) && !is_over_budget(batch);
}

bool BatchRunner::is_over_budget(const Batch& batch) const {
  HttpRequest request;
  request.client = batch.owner;
  request.method = "POST";
  request.path = batch.endpoint;
  return means_.access->refuse_over_budget(request).has_value();
}

void BatchRunner::read_answers() {
  for (Running& running : running_) {
    try {
      read(running);
    } catch (const std::exception& e) {
      running.answer.reset();
      running.response = error_response({500, without_folders(e.what()), "server_error", "", ""});
    }
    if (!running.answer) finish(running);
  }
  std::erase_if(running_, [](const Running& running) { return !running.answer; });
}

// Takes what is there; the answer is null when that was all.
void BatchRunner::read(Running& running) {
  while (running.answer) {
    Piece piece = running.answer->poll();
    if (!piece.head && piece.body.empty() && !piece.done) return;
    if (piece.head) running.response = std::move(*piece.head);
    running.response.body += piece.body;
    if (piece.done) running.answer.reset();
  }
}

void BatchRunner::finish(Running& running) {
  if (is_worth_another_try(running.response) && ++running.request.tries < kMaxTries) {
    is_resting_ = true;
    waiting_.push_front(std::move(running.request));
    return;
  }
  add_result(result_of(running.request.line.custom_id, running.id, running.response));
}

void BatchRunner::add_result(BatchResult result) {
  ++(result.is_success ? means_.monitor.batch_requests_completed : means_.monitor.batch_requests_failed);
  results_.push_back(std::move(result));
}

// Also without results: so it is seen that somebody wants the batch to end.
void BatchRunner::save() {
  if (saving_) {
    auto saved = saving_->poll();
    if (!saved) return;
    saving_.reset();
    if (!*saved) {
      spdlog::error("{}: {}", batch_->id, saved->error().message);
      running_.clear();
      waiting_.clear();
      results_.clear();
      return end("failed", without_folders(saved->error().message));
    }
    batch_ = std::move(**saved);
  }
  if (batch_->status == "cancelling") {
    running_.clear();
    waiting_.clear();
  }
  if (results_.empty() && (!is_due_ || (running_.empty() && waiting_.empty()))) return;
  is_due_ = false;
  const auto put = [store = means_.store, owner = batch_->owner, id = batch_->id,
                    results = std::exchange(results_, {})] { return store->add_results(owner, id, results); };
  saving_ = means_.workers->run<Batch>(put, wake_);
}

// What has no answer by now gets none.
void BatchRunner::expire() {
  for (Running& running : running_) waiting_.push_back(std::move(running.request));
  running_.clear();
  has_expired_ = has_expired_ || !waiting_.empty();
  for (const Waiting& waiting : waiting_) {
    add_result(refused(waiting.line.custom_id, "batch_expired", "the time of the batch was over before its turn came"));
  }
  waiting_.clear();
}

BatchHouse::IsOwn BatchRunner::own() const {
  return [this](const std::string& id) {
    return std::any_of(running_.begin(), running_.end(), [&](const Running& running) { return running.id == id; });
  };
}

void BatchRunner::give_way(bool is_tick) {
  if (running_.empty()) return;
  const auto give_up_last = [this] {
    waiting_.push_front(std::move(running_.back().request));
    running_.pop_back();
  };
  // Theirs may have to take the place of this one.
  if (is_tick && house_.others_wait_for_model(own())) {
    while (!running_.empty()) give_up_last();
    return;
  }
  const auto stats = house_.stats_of(running_.back().request.model);
  if (!stats || stats->queued == 0) return;
  // Who waits beside a free place has it at the next step, unless it is memory that is missing: that shows by waiting.
  if (!is_tick && (stats->running < stats->max_running || stats->steps < left_by_step_)) return;
  left_by_step_ = stats->steps + kStepsToLeave;
  give_up_last();
}

void BatchRunner::give_way_or_start(bool is_tick) {
  if (house_.others_ask(own())) return give_way(is_tick);
  if (waiting_.empty() || is_resting_) return;
  if (!may_run(*batch_)) {
    is_postponed_ = true;
    return waiting_.clear();
  }
  bool has_started = false;
  for (auto next = next_to_start(); next != waiting_.end(); next = next_to_start()) {
    start(next);
    has_started = true;
  }
  if (has_started) wake_();  // some may be refused already
}

// One that may begin now.
std::deque<BatchRunner::Waiting>::iterator BatchRunner::next_to_start() {
  if (!running_.empty()) {
    if (running_.size() >= at_once()) return waiting_.end();
    return std::find_if(waiting_.begin(), waiting_.end(),
                        [&](const Waiting& waiting) { return waiting.model == running_.back().request.model; });
  }
  std::set<std::string> away;
  auto to_load = waiting_.end();
  for (auto next = waiting_.begin(); next != waiting_.end(); ++next) {
    if (away.contains(next->model)) continue;
    const auto stats = house_.stats_of(next->model);
    // Who gave the card to another program wants it to have it.
    if (stats && stats->asleep_bytes == 0) return next;
    if (!stats && to_load == waiting_.end()) to_load = next;
    away.insert(next->model);
  }
  return to_load != waiting_.end() && house_.may_load() ? to_load : waiting_.end();
}

// Of requests for the model of those that run. One place stays free, so that a person who comes has it at once.
size_t BatchRunner::at_once() const {
  const auto stats = house_.stats_of(running_.back().request.model);
  return stats ? static_cast<size_t>(std::clamp(stats->max_running - 1, 1, kAtOnce)) : 1;
}

HttpRequest BatchRunner::request_of(const Waiting& waiting, std::string id) const {
  HttpRequest request;
  request.id = std::move(id);
  request.client = batch_->owner;
  request.method = "POST";
  request.path = batch_->endpoint;
  request.body = waiting.line.body;
  return request;
}

void BatchRunner::start(std::deque<Waiting>::iterator next) {
  Running running{std::move(*next), new_line_id(), nullptr, {}};
  waiting_.erase(next);
  if (running_.empty()) left_by_step_ = 0;  // its engine may be another
  try {
    running.answer = house_.ask_for_batch(request_of(running.request, running.id));
  } catch (const std::exception& e) {
    running.answer = immediate(error_response({500, without_folders(e.what()), "server_error", "", ""}));
  }
  running_.push_back(std::move(running));
}

void BatchRunner::end(const std::string& status, const std::string& problem) {
  const auto finish = [store = means_.store, owner = batch_->owner, id = batch_->id, status, problem]() -> Result<Ok> {
    TRY(store->end(owner, id, status, problem));
    return Ok{};
  };
  ending_ = means_.workers->run<Ok>(finish, wake_);
}

}  // namespace chimere::server

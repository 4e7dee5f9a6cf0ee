#include "odo/run_stream.h"

#include <utility>

namespace chimere::odo {

std::optional<ChatChunk> RunStream::poll() {
  if (done_) return std::nullopt;
  std::optional<ChatChunk> chunk = link_->chunks.take();
  if (!chunk) return std::nullopt;
  if (!first_token_time_ && (!chunk->content.empty() || !chunk->reasoning.empty() || !chunk->tool_calls.empty())) {
    first_token_time_ = std::chrono::steady_clock::now();
  }
  done_ = chunk->is_terminal();
  return chunk;
}

engine::Usage RunStream::seen() const {
  engine::Usage usage;
  usage.prompt_tokens = link_->prompt_tokens;
  usage.completion_tokens = link_->completion_tokens;
  return usage;
}

void RunTeller::set_route(std::string route) {
  std::lock_guard lock(mutex_);
  report_.route = std::move(route);
}

int RunTeller::begin(std::string stage, std::string about, bool is_sign) {
  std::lock_guard lock(mutex_);
  const int index = static_cast<int>(report_.steps.size());
  StepReport step;
  step.index = index;
  step.stage = std::move(stage);
  step.about = std::move(about);
  step.began = Clock::now();
  report_.steps.push_back(std::move(step));
  // Who is told of the beginning is told of this step with it.
  const bool was_started = is_started_;
  if (is_sign) start_locked();
  if (was_started) put_step_locked(index);
  return index;
}

void RunTeller::end(int step, StepReport::State state, std::string about, std::string detail) {
  std::lock_guard lock(mutex_);
  StepReport& report = report_.steps[static_cast<size_t>(step)];
  report.state = state;
  report.ms = std::chrono::duration<double, std::milli>(Clock::now() - report.began).count();
  if (!about.empty()) report.about = std::move(about);
  if (!detail.empty()) report.detail = std::move(detail);
  put_step_locked(step);
}

void RunTeller::tell_of(int step, std::string about, std::string detail) {
  std::lock_guard lock(mutex_);
  StepReport& report = report_.steps[static_cast<size_t>(step)];
  report.about = std::move(about);
  report.detail = std::move(detail);
  report.ms = std::chrono::duration<double, std::milli>(Clock::now() - report.began).count();
  put_step_locked(step);
}

void RunTeller::ask(int step, std::string about, std::string detail) {
  std::lock_guard lock(mutex_);
  StepReport& report = report_.steps[static_cast<size_t>(step)];
  report.state = StepReport::State::asks;
  report.about = std::move(about);
  report.detail = std::move(detail);
  start_locked();
  put_step_locked(step);
}

void RunTeller::add_tokens(int step, const engine::Usage& usage) {
  std::lock_guard lock(mutex_);
  StepReport& report = report_.steps[static_cast<size_t>(step)];
  report.tokens += usage.completion_tokens;
  report.answers.push_back({Clock::now(), usage});
  usage_.prompt_tokens += usage.prompt_tokens;
  usage_.cached_tokens += usage.cached_tokens;
  usage_.completion_tokens += usage.completion_tokens;
  usage_.reasoning_tokens += usage.reasoning_tokens;
  usage_.drafts += usage.drafts;
  usage_.draft_tokens += usage.draft_tokens;
  usage_.draft_tokens_accepted += usage.draft_tokens_accepted;
  usage_.draft_times.add(usage.draft_times);
  usage_.queue_seconds += usage.queue_seconds;
  usage_.prefill_seconds += usage.prefill_seconds;
  usage_.decode_seconds += usage.decode_seconds;
  link_->prompt_tokens = usage_.prompt_tokens;
  link_->completion_tokens = usage_.completion_tokens;
}

void RunTeller::tell(ChatChunk delta) {
  std::lock_guard lock(mutex_);
  start_locked();
  link_->chunks.put(std::move(delta));
}

void RunTeller::finish(ChatChunk finished) {
  std::lock_guard lock(mutex_);
  start_locked();
  finished.kind = ChatChunk::Kind::finished;
  finished.usage = usage_;
  finished.run = report_;
  link_->engine_id = 0;
  link_->chunks.put(std::move(finished));
}

void RunTeller::fail(Error error, bool is_too_long, int32_t prompt_tokens) {
  std::lock_guard lock(mutex_);
  ChatChunk chunk;
  chunk.kind = ChatChunk::Kind::failed;
  chunk.error = std::move(error);
  chunk.is_too_long = is_too_long;
  chunk.usage = usage_;
  if (is_too_long) chunk.usage.prompt_tokens = prompt_tokens;
  if (!report_.id.empty()) chunk.run = report_;
  link_->engine_id = 0;
  link_->chunks.put(std::move(chunk));
}

RunReport RunTeller::report() const {
  std::lock_guard lock(mutex_);
  return report_;
}

engine::Usage RunTeller::usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

void RunTeller::start_locked() {
  if (is_started_) return;
  is_started_ = true;
  ChatChunk started;
  started.kind = ChatChunk::Kind::started;
  started.run = RunReport{report_.id, report_.route, report_.mode, {}};
  started.steps = report_.steps;
  link_->chunks.put(std::move(started));
}

// Before the answer has begun they wait, and are told of with its beginning.
void RunTeller::put_step_locked(int step) {
  if (!is_started_) return;
  ChatChunk chunk;
  chunk.steps = {report_.steps[static_cast<size_t>(step)]};
  link_->chunks.put(std::move(chunk));
}

}  // namespace chimere::odo

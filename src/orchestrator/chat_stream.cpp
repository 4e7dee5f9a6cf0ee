// chat_stream.cpp  Delivery of chunks, and every way a stream can end.
#include "orchestrator/chat_stream.h"

#include <algorithm>
#include <utility>

namespace chimere::orchestrator {
namespace {

// Of one chunk. More come at once only to a reader who has stood still, and whoever writes them has others to serve.
constexpr int kMaxTokensAtOnce = 256;

}  // namespace

ChatStream::~ChatStream() {
  if (done_) return;
  // Put before we left, and never looked at. What is put later is cancelled by who puts it.
  for (const auto& unread : admission_->close()) {
    if (const auto* admitted = std::get_if<Admitted>(&unread)) engine_.cancel(admitted->submitted.id);
  }
  if (admitted_ && !terminal_) engine_.cancel(admitted_->submitted.id);
}

void ChatStream::cancel() {
  admission_->cancel();
  cancel_sent_ = true;
  if (admitted_ && !terminal_) engine_.cancel(admitted_->submitted.id);
}

void ChatStream::stop_thinking() {
  if (admitted_ && !terminal_) engine_.update(admitted_->submitted.id, {.stop_thinking = true});
}

std::optional<ChatChunk> ChatStream::wait(std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  for (;;) {
    if (auto chunk = poll()) return chunk;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (done_ || left.count() <= 0) return std::nullopt;
    admission_->wait_for(left);
  }
}

std::optional<ChatChunk> ChatStream::poll() {
  if (done_) return std::nullopt;
  if (!admitted_) {
    auto admission = admission_->take();
    if (!admission) return std::nullopt;
    if (auto* refused = std::get_if<Refused>(&*admission)) return refuse(std::move(*refused));
    return start(std::move(std::get<Admitted>(*admission)));
  }
  AnswerText& text = admitted_->text;
  ChatChunk delta;
  const auto has_text = [&delta] {
    return !delta.reasoning.empty() || !delta.content.empty() || !delta.tool_calls.empty() || !delta.tokens.empty() ||
           delta.progress;
  };
  for (int n = 0; !terminal_ && (n < kMaxTokensAtOnce || !has_text()); ++n) {
    auto event = admitted_->submitted.events->take();
    if (!event) break;
    if (event->kind == engine::Event::Kind::token) {
      if (!first_token_time_) first_token_time_ = std::chrono::steady_clock::now();
      ++n_tokens_;
      text.push(event->token, delta, event->was_guessed);
      if (text.is_stopped() && !cancel_sent_) cancel();
    } else if (event->kind == engine::Event::Kind::progress) {
      delta.progress = PromptProgress{event->usage.prompt_tokens, event->usage.cached_tokens, event->n_read};
    } else {
      text.finish(delta, event->kind != engine::Event::Kind::finished || event->reason != engine::FinishReason::stop);
      terminal_ = end(*event);
    }
  }
  if (has_text()) return delta;
  if (!terminal_) return std::nullopt;
  done_ = true;
  return std::exchange(terminal_, std::nullopt);
}

engine::Usage ChatStream::seen() const {
  engine::Usage usage;
  if (admitted_) usage.prompt_tokens = admitted_->n_prompt;
  usage.completion_tokens = n_tokens_;
  return usage;
}

ChatChunk ChatStream::refuse(Refused refused) {
  done_ = true;
  ChatChunk chunk;
  if (refused.error.code == Code::cancelled && cancel_sent_) {
    chunk.kind = ChatChunk::Kind::finished;
    chunk.finish = Finish::cancelled;
    return chunk;
  }
  chunk.kind = ChatChunk::Kind::failed;
  chunk.error = std::move(refused.error);
  chunk.usage.prompt_tokens = refused.n_too_many;
  chunk.is_too_long = refused.n_too_many > 0;
  return chunk;
}

ChatChunk ChatStream::start(Admitted admitted) {
  admitted_.emplace(std::move(admitted));
  if (cancel_sent_) engine_.cancel(admitted_->submitted.id);
  ChatChunk chunk;
  chunk.kind = ChatChunk::Kind::started;
  chunk.usage.prompt_tokens = admitted_->n_prompt;
  chunk.answer_limit = admitted_->answer_limit;
  return chunk;
}

ChatChunk ChatStream::end(const engine::Event& event) {
  ChatChunk chunk;
  chunk.usage = event.usage;
  if (event.kind == engine::Event::Kind::failed) {
    chunk.kind = ChatChunk::Kind::failed;
    chunk.error = event.error;
    return chunk;
  }
  chunk.kind = ChatChunk::Kind::finished;
  chunk.passages = std::move(admitted_->passages);
  chunk.prompt = std::move(admitted_->shown_prompt);
  const AnswerText& text = admitted_->text;
  if (text.is_stopped()) {
    // The engine learned of it a little later; the tokens it drew in between are no part of the answer.
    chunk.finish = text.stop_text().empty() ? Finish::tool_calls : Finish::stop;
    chunk.stop_text = text.stop_text();
    chunk.usage.completion_tokens = text.n_tokens();
    chunk.usage.reasoning_tokens = std::min(chunk.usage.reasoning_tokens, chunk.usage.completion_tokens);
  } else if (event.reason == engine::FinishReason::stop) {
    chunk.finish = text.has_tool_calls() ? Finish::tool_calls : Finish::stop;
  } else if (event.reason == engine::FinishReason::loop && admitted_->names_loops) {
    chunk.finish = Finish::loop;
  } else {
    // What a deadline cut off is an answer cut short, as one that reached its length.
    chunk.finish = event.reason == engine::FinishReason::cancelled ? Finish::cancelled : Finish::length;
  }
  return chunk;
}

}  // namespace chimere::orchestrator

// chat_stream.h  The answer to one request, as it comes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "orchestrator/answer_text.h"
#include "orchestrator/chat_chunk.h"

namespace chimere::orchestrator {

// What was made of a request: it runs.
struct Admitted {
  engine::Submitted submitted;
  AnswerText text;
  int32_t n_prompt = 0;
  std::vector<UsedPassage> passages = {};
  int32_t answer_limit = -1;
  bool names_loops = false;
};

// Where the thread that prepares a request leaves its result, and where everyone rings who has something for the
// reader.
class Mailbox {
 public:
  explicit Mailbox(std::function<void()> notify) : notify_(std::move(notify)) {}

  // By the writers.
  void ring();
  // False when the reader cancelled before: it may be gone, so what runs must be cancelled by the writer.
  bool put(Result<Admitted> result);
  // Instead of put(): the prompt does not fit into the context.
  void put_too_long(int n_prompt, int context_length);
  bool is_cancelled() const;

  // By the reader.
  std::optional<Result<Admitted>> take();
  // Tokens of the prompt when it does not fit; 0 otherwise.
  int32_t n_too_many() const;
  void cancel();
  // cancel(), and nobody reads here any more: what is put later is dropped. Gives what was put and not taken.
  std::optional<Result<Admitted>> leave();
  // Until the next ring, or the last one that nobody waited for.
  void wait(std::chrono::milliseconds longest);

 private:
  const std::function<void()> notify_;
  mutable std::mutex mutex_;
  std::condition_variable rung_condition_;
  bool rung_ = false;
  bool cancelled_ = false;
  bool left_ = false;
  int32_t n_too_many_ = 0;
  std::optional<Result<Admitted>> result_;
};

// Read by one thread at a time.
class ChatStream {
 public:
  ChatStream(engine::Engine& engine, std::shared_ptr<Mailbox> mailbox)
      : engine_(engine), mailbox_(std::move(mailbox)) {}
  // Cancels what still runs.
  ~ChatStream();
  ChatStream(const ChatStream&) = delete;
  ChatStream& operator=(const ChatStream&) = delete;

  // What has come since the last call, as one chunk; nullopt when there is nothing, and after the terminal chunk.
  std::optional<ChatChunk> poll();
  // The next chunk; nullopt when none came in time, and after the terminal chunk.
  std::optional<ChatChunk> wait(std::chrono::milliseconds longest);
  // The terminal chunk follows within a step: finished, cancelled.
  void cancel();
  // The thought ends before the next token, if one is open.
  void stop_thinking();

  // 0 until the engine has the request, and when it never gets it.
  engine::RequestId engine_id() const { return admitted_ ? admitted_->submitted.id : 0; }
  // When poll() first saw a token.
  std::optional<std::chrono::steady_clock::time_point> first_token_time() const { return first_token_time_; }

 private:
  ChatChunk start(Result<Admitted> result);
  ChatChunk end(const engine::Event& event);

  engine::Engine& engine_;
  std::shared_ptr<Mailbox> mailbox_;
  std::optional<Admitted> admitted_;
  std::optional<std::chrono::steady_clock::time_point> first_token_time_;
  std::optional<ChatChunk> terminal_;  // known, not delivered
  bool cancel_sent_ = false;
  bool done_ = false;
};

}  // namespace chimere::orchestrator

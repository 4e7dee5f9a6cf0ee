// chat_stream.h  The model's answer to one request, as it comes.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/channel.h"
#include "engine/engine.h"
#include "orchestrator/answer_stream.h"
#include "orchestrator/answer_text.h"

namespace chimere::orchestrator {

// What was made of a request: it runs.
struct Admitted {
  engine::Submitted submitted;
  AnswerText text;
  int32_t n_prompt = 0;
  std::vector<UsedPassage> passages = {};
  int32_t answer_limit = -1;
  bool names_loops = false;
  std::string shown_prompt = {};
};

// Or why it does not.
struct Refused {
  Error error;
  int32_t n_too_many = 0;  // tokens of a prompt that does not fit into the context; 0 otherwise
};

// From the thread that prepares a request to its reader: one value, and a ring whenever the engine has an event.
using Admission = Channel<std::variant<Admitted, Refused>>;

class ChatStream : public AnswerStream {
 public:
  ChatStream(engine::Engine& engine, std::shared_ptr<Admission> admission)
      : engine_(engine), admission_(std::move(admission)) {}
  ~ChatStream() override;
  ChatStream(const ChatStream&) = delete;
  ChatStream& operator=(const ChatStream&) = delete;

  std::optional<ChatChunk> poll() override;
  // The next chunk; nullopt when none came in time, and after the terminal chunk.
  std::optional<ChatChunk> wait(std::chrono::milliseconds longest);
  void cancel() override;
  void stop_thinking() override;

  // 0 until the engine has the request, and when it never gets it.
  engine::RequestId engine_id() const override { return admitted_ ? admitted_->submitted.id : 0; }
  engine::Usage seen() const override;
  std::optional<std::chrono::steady_clock::time_point> first_token_time() const override { return first_token_time_; }

 private:
  ChatChunk start(Admitted admitted);
  ChatChunk refuse(Refused refused);
  ChatChunk end(const engine::Event& event);

  engine::Engine& engine_;
  std::shared_ptr<Admission> admission_;
  std::optional<Admitted> admitted_;
  std::optional<std::chrono::steady_clock::time_point> first_token_time_;
  std::optional<ChatChunk> terminal_;  // known, not delivered
  int32_t n_tokens_ = 0;
  bool cancel_sent_ = false;
  bool done_ = false;
};

}  // namespace chimere::orchestrator

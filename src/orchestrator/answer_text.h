// answer_text.h  From tokens to the parts of an answer: whole characters, no stop strings, reasoning and tool calls
// apart.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/output_parser.h"
#include "orchestrator/chat_chunk.h"
#include "orchestrator/stop_strings.h"
#include "sampling/sampler.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

class AnswerText {
 public:
  struct Options {
    std::vector<std::string> stop;
    bool tokens = false;    // fill ChatChunk::tokens
    float max_entropy = 1;  // of a token, for its certainty
    bool one_call = false;  // the answer is over behind its first call of a tool
  };

  // Without a parser all text is content.
  AnswerText(Tokenizer tokenizer, std::optional<chat::OutputParser> parser, Options options);

  // Adds to `out` what became certain with this token. After a stop string, or the call that is the only one, nothing
  // more comes. `was_guessed`: for TokenInfo.
  void push(const Sampled& token, ChatChunk& out, bool was_guessed = false);
  // The rest, when no token follows. `is_cut`: the model did not stop by itself.
  void finish(ChatChunk& out, bool is_cut);

  bool is_stopped() const { return stop_.hit() || is_over_; }
  const std::string& stop_text() const { return stop_.matched(); }
  bool has_tool_calls() const { return has_tool_calls_; }  // complete ones
  int n_tokens() const { return n_tokens_; }

 private:
  struct PendingToken {
    TokenInfo info;
    size_t begin;  // of its text in the answer, in bytes
  };

  std::string decode(int32_t id);
  void release(const std::string& text, ChatChunk& out);
  void release_tokens(size_t end, ChatChunk& out);
  void add_events(ChatChunk& out);

  Tokenizer tokenizer_;
  StreamDecoder decoder_;
  StopStrings stop_;
  std::optional<chat::OutputParser> parser_;
  std::vector<chat::OutputEvent> events_;  // scratch
  bool tokens_;
  float max_entropy_;
  bool one_call_;
  bool is_over_ = false;
  bool has_tool_calls_ = false;
  int n_tokens_ = 0;
  size_t decoded_bytes_ = 0;
  size_t released_bytes_ = 0;
  std::deque<PendingToken> pending_;  // their text is held back, and so are they
};

}  // namespace chimere::orchestrator

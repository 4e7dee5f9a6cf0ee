// chat_template.h  A model's chat template with the conventions around it: what variables it gets, how messages are
// normalised for it, and what it supports.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/dialects/dialect.h"
#include "chat/markers.h"
#include "chat/message.h"
#include "jinja/template.h"

namespace chimere::chat {

using jinja::Clock;
using jinja::Rendered;
using jinja::Span;

struct ChatInput {
  std::vector<Message> messages;
  std::vector<Tool> tools;
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;
  // The variables `date_string` ("26 Jul 2024") and `datetime` ("Jul 26 2024 10:00:00 GMT"), which transformers does
  // not set: some templates write the day they were made where they have none, and others can do nothing without.
  bool tells_date = false;
  std::string extra_kwargs_json;  // an object; cannot replace messages, tools or the special tokens
  Clock clock = jinja::system_clock();
};

// What all renders for one request may take together, however often a template has to be tried.
struct RenderAllowance {
  uint64_t steps;
  std::chrono::steady_clock::time_point deadline;
};

class ChatTemplate {
 public:
  // The two texts are the special tokens of the vocabulary; they are trusted, everything in a ChatInput is not.
  static Result<ChatTemplate> create(std::string_view source, std::string bos_text, std::string eos_text,
                                     const jinja::Limits& limits = {});

  // Spans marked is_input must be tokenised without recognising any special token. System messages that the template
  // refuses, or passes over behind the start, go where it takes them (system_messages.h).
  Result<Rendered> render(const ChatInput& input, RenderAllowance& allowance) const;
  Result<Rendered> render(const ChatInput& input) const;
  // For a new request.
  RenderAllowance allowance() const;

  // The same up to the end of the last message, an assistant's text whose turn stays open: the model goes on with it.
  Result<Rendered> render_open(const ChatInput& input, RenderAllowance& allowance) const;

  // What add_generation_prompt adds at the end; tells in which state the model's output starts.
  Result<std::string> generation_prompt(const ChatInput& input, RenderAllowance& allowance) const;

  // For tokenizers that add the bos token themselves.
  void drop_leading_bos(Rendered& rendered) const;

  // Steps of all the conversations that are tried when a template is read. Those in use need a few thousand.
  static constexpr uint64_t kProbeSteps = 500'000;
  uint64_t probe_steps() const { return probe_steps_; }
  // What a user should know: the template is so slow that not all of it was tried. Empty: nothing.
  const std::string& warning() const { return warning_; }
  bool supports_tools() const { return supports_tools_; }
  // Whether enable_thinking changes anything.
  bool supports_thinking_switch() const { return supports_thinking_switch_; }
  const Dialect& dialect() const { return *dialect_; }
  const ThoughtMarkers& thought_markers() const { return thought_markers_; }

 private:
  ChatTemplate(jinja::Template parsed, std::string bos, std::string eos, const jinja::Limits& limits)
      : template_(std::move(parsed)), bos_text_(std::move(bos)), eos_text_(std::move(eos)), limits_(limits) {}

  void probe(std::string_view source);
  Result<jinja::Value> message_value(const Message& message, bool parse_arguments) const;
  Result<Rendered> render_with(const ChatInput& input, const jinja::Limits& limits, uint64_t& n_steps) const;
  Result<Rendered> render_once(const ChatInput& input, RenderAllowance& allowance) const;

  jinja::Template template_;
  std::string bos_text_, eos_text_;
  jinja::Limits limits_;
  const char* reasoning_key_ = "reasoning_content";  // of a message; gpt-oss calls it `thinking`
  const Dialect* dialect_ = &default_dialect();
  ThoughtMarkers thought_markers_;
  bool supports_tools_ = false;
  bool supports_thinking_switch_ = false;
  bool arguments_as_object_ = true;
  bool keeps_developer_ = false;  // gpt-oss knows the role
  bool handles_parts_ = false;    // content may be a list of parts
  bool requires_parts_ = false;   // content must be one
  bool wants_functions_ = false;  // reads tools from `functions`, a JSON text (Firefunction)
  uint64_t probe_steps_ = 0;
  std::string warning_;
};

// True when the prompt ends inside an open thought, so that the output starts with reasoning.
bool ends_inside_reasoning(std::string_view generation_prompt, const ThoughtMarkers& markers = {});

}  // namespace chimere::chat

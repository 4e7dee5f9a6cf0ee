// chat_request.h  What goes into ChatService: a conversation and how to continue it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chat/message.h"
#include "sampling/sampling_params.h"

namespace chimere::orchestrator {

// How to generate, whatever the prompt is.
struct GenerateOptions {
  SamplingParams sampling;
  std::optional<uint64_t> seed;                    // random when absent
  std::vector<std::string> dry_sequence_breakers;  // texts; used when sampling asks for DRY
  int32_t max_tokens = -1;                         // -1: until the context is full
  std::vector<std::string> stop;                   // the answer ends before the first of these
  bool logprobs = false;                           // fill ChatChunk::tokens
};

struct ChatRequest : GenerateOptions {
  std::vector<chat::Message> messages;
  std::vector<chat::Tool> tools;
  std::optional<bool> enable_thinking;  // what the template does by itself when absent
  int32_t thinking_budget = -1;         // tokens of the thought; -1: what the file says, or half of the context left
  std::string template_kwargs;          // a JSON object of further template variables; empty: none
};

// Text to be continued as it is, without a template.
struct CompletionRequest : GenerateOptions {
  std::string prompt;
};

}  // namespace chimere::orchestrator

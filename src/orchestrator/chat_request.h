// chat_request.h  What goes into ChatService: a conversation and how to continue it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/message.h"
#include "orchestrator/fill_in.h"
#include "orchestrator/thinking_options.h"
#include "sampling/sampling_params.h"
#include "speculative/mode.h"

namespace chimere {
struct Adapter;  // backend/adapter.h
}

namespace chimere::orchestrator {

class ShownExamples;  // shown_examples.h

// The form an answer must have. At most one of them is given; a request with two is refused.
struct AnswerForm {
  bool json_object = false;  // any JSON object
  std::string json_schema;   // a JSON text that fits this schema; empty: none
  std::string grammar;       // GBNF; empty: none
  std::string regex;         // the whole answer matches; empty: none

  bool is_free() const { return !json_object && json_schema.empty() && grammar.empty() && regex.empty(); }
};

// Whether the answer is a call of a tool.
enum class ToolChoice {
  automatic,  // as the model likes
  none,       // the tools are shown to the model, calls are not looked for
  required,   // at least one call, of any tool
  named,      // a call of ChatRequest::tool_name
};

// Which tables of n-grams (engram/) and passages take part in the answer.
struct MemoryUse {
  struct Named {
    std::string name;
    float weight = 1;  // 0 to 1
  };
  std::vector<Named> tables;
  std::string passages;      // name of a file of passages (retrieval/); empty: none
  int32_t top_passages = 3;  // so many of them, the nearest to the question, take part
  int32_t notes = 3;         // so many of the owner's notes, if they are about the question, are told to the model
  std::string owner;         // whose own notes and table take part when there are some; empty: nobody's
  float alpha = 1;           // 0: no memory
  bool in_thoughts = false;  // also before the end of a thought
};

// A text that was found for a question.
struct LookedUp {
  std::string source;  // where it stands
  std::string text;
  float weight = 0;  // of its n-grams in the mixture, 0 to 1; 0: it is only read
};

// A LoRA adapter that changes the model for one request.
struct AdapterUse {
  std::string name;
  std::optional<float> scale;                     // the adapter's own when absent
  std::shared_ptr<const Adapter> held = nullptr;  // itself, where it is in no library
};

// A text whose tokens become likelier or rarer.
struct TextBias {
  std::string text;
  float bias = 0;
};

// How to generate, whatever the prompt is.
struct GenerateOptions {
  SamplingParams sampling;
  std::vector<TextBias> text_biases;               // beside those of sampling, which are of token ids
  std::optional<uint64_t> seed;                    // random when absent
  std::vector<std::string> dry_sequence_breakers;  // texts; used when sampling asks for DRY
  int32_t max_tokens = -1;                         // -1: until the context is full
  std::vector<std::string> stop;                   // the answer ends before the first of these
  bool logprobs = false;                           // fill ChatChunk::tokens
  uint64_t owner = 0;                              // whose request it is; 0: where all are one's
  uint64_t cache_scope = 0;                        // who may share what was computed for the prompt
  AnswerForm form;                                 // of the answer, behind its thought
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  MemoryUse memory;
  std::vector<AdapterUse> adapters;              // their changes add up
  ThinkingOptions thinking;                      // what it leaves open is the service's to say
  std::optional<speculative::Mode> speculation;  // absent: what the service was started with
  bool token_stats = false;                      // fill ChatChunk::tokens with entropy and certainty
  bool token_ids = false;                        // fill ChatChunk::tokens with their ids
  bool show_prompt = false;                      // fill ChatChunk::prompt
  bool tells_progress = false;                   // fill ChatChunk::progress
  std::vector<std::string> given;  // what the caller said himself, by the names of his protocol; the rest are defaults
};

struct ChatRequest : GenerateOptions {
  std::vector<chat::Message> messages;
  // Looked up for the last question: the model is told of them, as of the passages that `memory` finds.
  std::vector<LookedUp> looked_up;
  std::vector<chat::Tool> tools;
  std::string closing;  // with what the answer ends where it is a text in no given form; empty: as the model likes
  // Are shown before the last question where it is like theirs; null: none are.
  std::shared_ptr<const ShownExamples> examples;
  ToolChoice tool_choice = ToolChoice::automatic;
  std::string tool_name;                // of ToolChoice::named
  bool parallel_tool_calls = true;      // false: at most one call
  bool only_declared_tools = false;     // no call of another name can be written, where calls have a marker
  std::optional<bool> enable_thinking;  // what the template does by itself when absent
  int32_t thinking_budget = -1;         // tokens of the thought; -1: what the file says, or half of the context left
  int32_t thinking_limit = -1;          // at most this many where thinking_budget does not say
  std::string template_kwargs;          // a JSON object of further template variables; empty: none
  bool goes_on = false;        // with the last message, a text of the assistant, or his thought if there is no text
  bool stays_private = false;  // nothing of it is kept to learn from, whatever its owner agreed to
  bool add_generation_prompt = true;  // false: the model goes on behind the last message, whatever comes there
};

// Text to be continued as it is, without a template.
struct CompletionRequest : GenerateOptions {
  std::string prompt;
  std::vector<int32_t> prompt_ids;  // used instead, when not empty
  std::optional<FillIn> gap = {};   // behind the prompt: the answer fills it
};

// What requests that do not say otherwise get: what the file recommends and what the service was started with.
struct Defaults {
  SamplingParams sampling = {};
  std::optional<uint64_t> seed = {};
  int32_t max_tokens = -1;
  std::optional<bool> enable_thinking = {};
  std::string template_kwargs = {};  // those that a request does not name

  void apply_to(GenerateOptions& options) const {
    options.sampling = sampling;
    options.seed = seed;
    options.max_tokens = max_tokens;
  }
  void apply_to(ChatRequest& request) const {
    apply_to(static_cast<GenerateOptions&>(request));
    request.enable_thinking = enable_thinking;
    request.template_kwargs = template_kwargs;
  }
};

}  // namespace chimere::orchestrator

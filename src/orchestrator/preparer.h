// preparer.h  From a request in words to one in token ids.
//
//   ChatRequest -> passages and notes -> template -> spans -> ids -> form of the answer -> thought -> engine::Request
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "orchestrator/answer_text.h"
#include "orchestrator/chat_chunk.h"
#include "orchestrator/chat_model.h"
#include "orchestrator/chat_request.h"
#include "orchestrator/constraints.h"
#include "orchestrator/memory_service.h"
#include "orchestrator/shown_examples.h"
#include "orchestrator/thinking_options.h"

namespace chimere::orchestrator {

// A request ready for the engine, and the reader of its answer.
struct Prepared {
  engine::Request request;
  AnswerText text;
  std::vector<UsedPassage> passages = {};
  std::string rendered = {};      // the prompt of messages, without the token that the tokenizer puts before it
  std::string shown_prompt = {};  // all of it, when it was asked for
  bool names_loops = false;  // an answer that repeats itself ends as Finish::loop; otherwise as one that is too long
};

// Used by one thread. It runs no model, but looking up passages waits for their embedder, and examples for embed_with().
class Preparer {
 public:
  // `model` and `memory` outlive it.
  Preparer(const ChatModel& model, MemoryService& memory, int context_length);

  // How texts become vectors of the model that answers; without it no examples are shown.
  void embed_with(EmbedTexts embed) { embed_ = std::move(embed); }

  Result<Prepared> prepare(const ChatRequest& request);
  Result<Prepared> prepare(const CompletionRequest& request);
  // The prompt alone, of a request that is not run: with the passages and notes that it would have.
  Result<std::vector<int32_t>> prompt_of(const ChatRequest& request);
  // The same as a text.
  Result<std::string> text_of(const ChatRequest& request);

 private:
  Result<Prepared> finished(const GenerateOptions& request, engine::Request generate,
                            std::optional<chat::OutputParser> parser, PassageMemory::Found passages,
                            bool one_call = false);

  const ChatModel& model_;
  MemoryService& memory_;
  const int context_length_;
  Constraints constraints_;
  ThinkingResolver thinking_;
  EmbedTexts embed_;
};

}  // namespace chimere::orchestrator

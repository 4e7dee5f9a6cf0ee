// chat_model.h  A model that can be talked to: weights, vocabulary, template, and what its file recommends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "engine/embedding.h"
#include "engine/request.h"
#include "models/adapter_library.h"
#include "models/model.h"
#include "orchestrator/chat_request.h"
#include "orchestrator/memory_files.h"
#include "retrieval/note_library.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

struct ChatModel {
  std::unique_ptr<models::Model> model;
  Tokenizer tokenizer;
  std::optional<chat::ChatTemplate> chat_template;  // none: it continues text and answers no messages
  std::optional<chat::ChatTemplate> tool_template;  // some files have another one for requests with tools
  Defaults defaults;
  int32_t thinking_budget = -1;  // chimere.thinking_budget of the file: tokens of a thought when a request does not say
  std::vector<std::string> warnings;  // what its user should know
  MemoryFiles memory = {};
  engine::Pooling pooling = engine::Pooling::mean;             // of its embeddings
  std::shared_ptr<models::AdapterLibrary> adapters = nullptr;  // of `model`; never null after from_model
  ThinkingOptions thinking = {};                               // where a request does not say
  std::unique_ptr<models::Model> draft_model = nullptr;        // guesses for `model`; null: none does

  // Fails when the file has no vocabulary or a broken chat template. `template_text` stands for the file's own
  // templates when it is not empty.
  static Result<ChatModel> from_model(std::unique_ptr<models::Model> model, const std::string& template_text = {});

  // Refuses a model that gives no logits, and one of another vocabulary.
  Status add_draft_model(std::unique_ptr<models::Model> draft);

  // Null when there is none.
  const chat::ChatTemplate* template_for(const ChatRequest& request) const {
    if (tool_template && !request.tools.empty()) return &*tool_template;
    return chat_template ? &*chat_template : nullptr;
  }
  // Takes the tables, notes and passages of a folder, and behind them the tables that come with the program; either may
  // be empty. What is wrong with a file of the folder becomes a warning, and the others can be used.
  void open_memories(const std::string& folder, const std::string& shipped = {},
                     const retrieval::NoteLimits& limits = {});
  // The adapters a request names, or null when it names none. not_found names those there are.
  Result<std::shared_ptr<const AdapterSet>> adapters_for(const std::vector<AdapterUse>& uses) const;
  // Ids that are never drawn: placeholders of the vocabulary, rows of the output matrix beyond it, what the file asks
  // for.
  std::vector<int32_t> suppressed_ids() const;
};

// general.sampling.* of a file, or the model's own distribution.
Result<SamplingParams> recommended_sampling(const gguf::Metadata& metadata);

// A request to the engine without its prompt: seed drawn, texts turned into ids.
engine::Request generation_request(const GenerateOptions& options, const Tokenizer& tokenizer);

}  // namespace chimere::orchestrator

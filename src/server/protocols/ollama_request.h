// ollama_request.h  Bodies of POST /api/chat, /api/generate, /api/embed and /api/show, as Ollama's clients send them.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "orchestrator/chat_request.h"
#include "server/http/api_error.h"
#include "server/protocols/embedding_request.h"
#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {

// Of /api/chat and /api/generate. Without a message or a prompt it only asks whether the model is there.
struct OllamaCall : CallOptions {
  std::variant<orchestrator::ChatRequest, orchestrator::CompletionRequest> request;  // the second: `raw`
  std::string named;     // the model as the client wrote it, with its tag; `model` is without
  bool is_chat = false;  // messages in, a message out; otherwise a prompt in, a response out
  bool only_loads = false;
  bool wants_thought = false;  // `think` asks for one
};

std::variant<OllamaCall, ApiError> parse_ollama_chat(std::string_view body, const orchestrator::Defaults& defaults);
// Null `tokenizer`: special tokens of a raw prompt are not known by their names.
std::variant<OllamaCall, ApiError> parse_ollama_generate(std::string_view body, const orchestrator::Defaults& defaults,
                                                         const Tokenizer* tokenizer = nullptr);

struct OllamaEmbedCall : EmbeddingCall {
  std::string named;
  bool is_legacy = false;  // /api/embeddings: a `prompt`, and one vector back
  bool cuts = true;        // `truncate`: a text longer than the context is cut to it
};

std::variant<OllamaEmbedCall, ApiError> parse_ollama_embed(std::string_view body, const EmbeddingShapeOf& shape_of,
                                                           bool is_legacy);

// {"model": NAME}, once {"name": NAME}.
struct OllamaShowCall {
  std::string model;
};
std::variant<OllamaShowCall, ApiError> parse_ollama_show(std::string_view body);

// Ollama's names end with a tag; here each model has one file.
std::string without_tag(std::string_view name);

}  // namespace chimere::server

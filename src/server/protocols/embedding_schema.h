// embedding_schema.h  Bodies of /v1/embeddings and /v1/rerank, and their answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/embedder.h"
#include "server/http/api_error.h"

namespace chimere::server {

inline constexpr size_t kMaxEmbedInputs = 2048;
inline constexpr size_t kMaxEmbedNumbers = size_t{4} << 20;  // written as decimals

struct EmbeddingCall {
  std::string model;
  std::string user;
  std::vector<orchestrator::EmbedInput> inputs;
  bool as_base64 = false;
  int dimensions = 0;  // 0: all
  std::vector<std::string> ignored;
};

struct RerankCall {
  std::string model;
  std::string user;
  std::string query;
  std::vector<std::string> documents;
  int top_n = 0;  // 0: all
  bool return_documents = false;
  std::vector<std::string> ignored;
};

std::variant<EmbeddingCall, ApiError> parse_embedding_call(std::string_view body, int max_dimensions);
std::variant<RerankCall, ApiError> parse_rerank_call(std::string_view body);

// `model` is the name shown.
std::string embedding_body(const EmbeddingCall& call, const orchestrator::Embedded& embedded, const std::string& model);
// `scored`: one number for each document, by the model's head; otherwise vectors, the first of which is the query's.
std::string rerank_body(const RerankCall& call, const orchestrator::Embedded& embedded, bool scored,
                        const std::string& model);

}  // namespace chimere::server

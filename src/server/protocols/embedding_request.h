// embedding_request.h  Bodies of POST /v1/embeddings and /v1/rerank.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/embedder.h"
#include "server/http/api_error.h"
#include "tokenizer/tokenizer.h"

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
  bool is_tei = false;  // asked as text-embeddings-inference is: `texts` and `return_text`, and a bare list comes back
  std::vector<std::string> ignored;
};

// Of the model that will embed. The tokenizer reads texts that stand among token ids; without one there may be none.
struct EmbeddingShape {
  int dimensions = 0;
  const Tokenizer* tokenizer = nullptr;
};
// By the name that a request gives the model; "" where it names none.
using EmbeddingShapeOf = std::function<EmbeddingShape(const std::string& model)>;

std::variant<EmbeddingCall, ApiError> parse_embedding_call(std::string_view body, const EmbeddingShapeOf& shape_of);
std::variant<RerankCall, ApiError> parse_rerank_call(std::string_view body);

}  // namespace chimere::server

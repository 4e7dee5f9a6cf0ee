// embedding_response.h  Answers of /v1/embeddings and /v1/rerank.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/embedder.h"
#include "server/protocols/embedding_request.h"

namespace chimere::server {

// The first `n` values, at length 1 again; all of them with 0.
std::vector<float> shortened(const std::vector<float>& vector, int n);
// `model` is the name shown.
// The list that llama.cpp's /embedding answers with.
std::string llama_embedding_body(const EmbeddingCall& call, const orchestrator::Embedded& embedded);
std::string embedding_body(const EmbeddingCall& call, const orchestrator::Embedded& embedded, const std::string& model);
// `scored`: one number for each document, by the model's head; otherwise vectors, the first of which is the query's.
std::string rerank_body(const RerankCall& call, const orchestrator::Embedded& embedded, bool scored,
                        const std::string& model);

}  // namespace chimere::server

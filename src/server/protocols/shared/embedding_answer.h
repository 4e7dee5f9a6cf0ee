// embedding_answer.h  The answer to a call for vectors: embedded by the embedder, written by a worker.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/endpoints.h"

namespace chimere::server {

using EmbeddingWriter = std::function<std::string(const orchestrator::Embedded&)>;

std::unique_ptr<Answer> answer_embedded(const Services& services, orchestrator::Embedder& embedder, Call& call,
                                        std::vector<orchestrator::EmbedInput> inputs,
                                        const std::vector<std::string>& ignored, EmbeddingWriter write,
                                        ErrorWriter write_error = error_response);

}  // namespace chimere::server

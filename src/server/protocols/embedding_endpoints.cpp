// embedding_endpoints.cpp  /v1/embeddings and /v1/rerank: texts to vectors, and documents in the order of a query.
#include <utility>

#include "server/endpoints.h"
#include "server/protocols/embedding_request.h"
#include "server/protocols/embedding_response.h"
#include "server/protocols/shared/embedding_answer.h"

namespace chimere::server {
namespace {

using orchestrator::Embedded;
using orchestrator::Embedder;

constexpr std::string_view kLlamaPath = "/embedding";  // whose answer is a list of its own

std::unique_ptr<Answer> embeddings(const Services& services, Call call, EmbeddingCall& parsed) {
  const bool is_llama = call.request.path == kLlamaPath;
  auto asked = std::make_shared<EmbeddingCall>(std::move(parsed));
  Embedder& embedder = services.embedder_for(asked->model);
  if (const auto error = services.names.refuse_to_embed(asked->model)) return answer_now(call, error_response(*error));
  call.record->set_user(asked->user);
  return answer_embedded(services, embedder, call, std::move(asked->inputs), asked->ignored,
                         [asked, is_llama, &embedder](const Embedded& e) {
                           return is_llama ? llama_embedding_body(*asked, e)
                                           : embedding_body(*asked, e, embedder.model_name());
                         });
}

std::unique_ptr<Answer> rerank(const Services& services, Call call, RerankCall& parsed) {
  auto asked = std::make_shared<RerankCall>(std::move(parsed));
  if (const auto error = services.names.refuse_to_embed(asked->model)) return answer_now(call, error_response(*error));
  call.record->set_user(asked->user);
  Embedder& embedder = services.embedder_for(asked->model);
  const bool scored = embedder.scores_pairs();
  std::vector<orchestrator::EmbedInput> inputs;
  if (!scored) inputs.push_back({asked->query});
  for (const std::string& document : asked->documents) {
    orchestrator::EmbedInput& input = inputs.emplace_back();
    input.text = scored ? asked->query : document;
    if (scored) input.second = document;
  }
  return answer_embedded(
      services, embedder, call, std::move(inputs), asked->ignored,
      [asked, scored, &embedder](const Embedded& e) { return rerank_body(*asked, e, scored, embedder.model_name()); });
}

}  // namespace

void add_embedding_endpoints(Router& router, const Services& services) {
  const auto parse = [services](const std::string& body) {
    return parse_embedding_call(body, [&services](const std::string& model) -> EmbeddingShape {
      const Embedder& embedder = services.embedder_for(model);
      return {embedder.dimensions(), &embedder.tokenizer()};
    });
  };
  add_parsed_route(router, services, "/v1/embeddings", parse, embeddings);
  add_parsed_route(router, services, "/embedding", parse, embeddings);
  add_parsed_route(router, services, "/v1/rerank", parse_rerank_call, rerank);
}

}  // namespace chimere::server

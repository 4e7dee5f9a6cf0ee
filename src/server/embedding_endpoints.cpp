// embedding_endpoints.cpp  /v1/embeddings and /v1/rerank: texts to vectors, and documents in the order of a query.
#include <utility>

#include "server/embedding_schema.h"
#include "server/endpoints.h"
#include "server/generate_fields.h"

namespace chimere::server {
namespace {

using orchestrator::Embedded;
using orchestrator::Embedder;
using orchestrator::EmbedJob;

// Waits for the vectors and makes an answer of them.
class EmbeddingAnswer : public Answer {
 public:
  using Writer = std::function<std::string(const Embedded&)>;

  EmbeddingAnswer(std::unique_ptr<EmbedJob> job, Writer write, std::string ignored,
                  std::unique_ptr<RequestRecord> record)
      : job_(std::move(job)), write_(std::move(write)), ignored_(std::move(ignored)), record_(std::move(record)) {
    record_->watch([job = job_.get()] { job->cancel(); });
  }

  Piece poll() override {
    Piece piece;
    auto embedded = job_->poll();
    if (!embedded) return piece;
    piece.head = *embedded ? success(**embedded) : failure(embedded->error());
    if (!ignored_.empty()) piece.head->add_header("X-Chimere-Ignored", ignored_);
    piece.done = true;
    record_->set_status(piece.head->status);
    return piece;
  }

 private:
  HttpResponse success(const Embedded& embedded) {
    engine::Usage usage;
    usage.prompt_tokens = embedded.n_tokens;
    record_->set_usage(usage, "embedded");
    return {200, {{"Content-Type", "application/json"}}, write_(embedded)};
  }
  HttpResponse failure(const Error& error) const {
    return error_response(error.code == Code::cancelled ? record_->cancel_error() : to_api_error(error));
  }

  std::unique_ptr<EmbedJob> job_;
  const Writer write_;
  const std::string ignored_;
  std::unique_ptr<RequestRecord> record_;
};

std::unique_ptr<Answer> start(const Services& services, Call& call, std::vector<orchestrator::EmbedInput> inputs,
                              const std::vector<std::string>& ignored, EmbeddingAnswer::Writer write) {
  orchestrator::EmbedCall embed;
  embed.inputs = std::move(inputs);
  embed.owner = Services::owner_of(call);
  if (services.request_timeout.count() > 0) embed.deadline = call.record->started() + services.request_timeout;
  return std::make_unique<EmbeddingAnswer>(services.embedder.start(std::move(embed), call.wake), std::move(write),
                                           ignored_header(ignored), std::move(call.record));
}

std::unique_ptr<Answer> embeddings(const Services& services, Call call) {
  const Embedder& embedder = services.embedder;
  auto parsed = parse_embedding_call(call.request.body, embedder.dimensions());
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  auto asked = std::make_shared<EmbeddingCall>(std::move(std::get<EmbeddingCall>(parsed)));
  call.record->set_user(asked->user);
  std::string model = asked->model.empty() ? embedder.model_name() : asked->model;
  return start(services, call, std::move(asked->inputs), asked->ignored,
               [asked, model = std::move(model)](const Embedded& e) { return embedding_body(*asked, e, model); });
}

std::unique_ptr<Answer> rerank(const Services& services, Call call) {
  auto parsed = parse_rerank_call(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  auto asked = std::make_shared<RerankCall>(std::move(std::get<RerankCall>(parsed)));
  call.record->set_user(asked->user);
  std::string model = asked->model.empty() ? services.embedder.model_name() : asked->model;
  const bool scored = services.embedder.scores_pairs();
  std::vector<orchestrator::EmbedInput> inputs;
  if (!scored) inputs.push_back({asked->query});
  for (const std::string& document : asked->documents) {
    orchestrator::EmbedInput& input = inputs.emplace_back();
    input.text = scored ? asked->query : document;
    if (scored) input.second = document;
  }
  return start(
      services, call, std::move(inputs), asked->ignored,
      [asked, scored, model = std::move(model)](const Embedded& e) { return rerank_body(*asked, e, scored, model); });
}

}  // namespace

void add_embedding_endpoints(Router& router, const Services& services) {
  const auto add = [&](const char* path, std::unique_ptr<Answer> (*handler)(const Services&, Call)) {
    router.add({.method = "POST", .path = path, .handler = [services, handler](Call call) {
                  return handler(services, std::move(call));
                }});
  };
  add("/v1/embeddings", embeddings);
  add("/v1/rerank", rerank);
}

}  // namespace chimere::server

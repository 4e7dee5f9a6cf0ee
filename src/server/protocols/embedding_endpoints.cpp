// embedding_endpoints.cpp  /v1/embeddings and /v1/rerank: texts to vectors, and documents in the order of a query.
#include <utility>

#include "server/endpoints.h"
#include "server/protocols/embedding_request.h"
#include "server/protocols/embedding_response.h"
#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {
namespace {

using orchestrator::Embedded;
using orchestrator::Embedder;
using orchestrator::EmbedJob;

// Waits for the vectors and makes an answer of them.
class EmbeddingAnswer : public Answer {
 public:
  using Writer = std::function<std::string(const Embedded&)>;

  EmbeddingAnswer(std::shared_ptr<Workers> workers, std::unique_ptr<EmbedJob> job, Writer write, std::string ignored,
                  std::string model, Call call)
      : workers_(std::move(workers)),
        job_(std::move(job)),
        write_(std::move(write)),
        ignored_(std::move(ignored)),
        model_(std::move(model)),
        call_(std::move(call)) {
    call_.record->watch([job = job_.get()] { job->cancel(); });
  }

  Piece poll() override {
    if (!writing_) {
      auto embedded = job_->poll();
      if (!embedded) return {};
      if (!*embedded) return whole(failure(embedded->error()));
      write(std::move(**embedded));
    }
    auto text = writing_->poll();
    if (!text) return {};
    if (!*text) return whole(error_response(failed_work(text->error())));
    return whole({200, {{"Content-Type", "application/json"}}, std::move(**text)});
  }

 private:
  // By a worker: millions of numbers as text take a second.
  void write(Embedded embedded) {
    engine::Usage usage;
    usage.prompt_tokens = embedded.n_tokens;
    call_.record->set_usage(usage, "embedded");
    auto work = [write = write_, made = std::make_shared<Embedded>(std::move(embedded))]() -> Result<std::string> {
      std::string text = write(*made);
      *made = {};
      return text;
    };
    writing_ = workers_->run<std::string>(std::move(work), call_.wake);
  }
  HttpResponse failure(const Error& error) const {
    return error_response(error.code == Code::cancelled ? call_.record->cancel_error() : to_api_error(error));
  }
  Piece whole(HttpResponse response) {
    if (!ignored_.empty()) response.add_header("X-Chimere-Ignored", ignored_);
    response.add_header("X-Chimere-Model", model_);
    call_.record->set_status(response.status);
    return {std::move(response), {}, true};
  }

  const std::shared_ptr<Workers> workers_;
  std::unique_ptr<EmbedJob> job_;
  const Writer write_;
  const std::string ignored_;
  const std::string model_;
  Call call_;
  std::unique_ptr<orchestrator::ServiceJob<std::string>> writing_;
};

std::unique_ptr<Answer> start(const Services& services, Call& call, std::vector<orchestrator::EmbedInput> inputs,
                              const std::vector<std::string>& ignored, EmbeddingAnswer::Writer write) {
  orchestrator::EmbedCall embed;
  embed.inputs = std::move(inputs);
  embed.owner = Services::owner_of(call);
  if (services.request_timeout.count() > 0) embed.deadline = call.record->started() + services.request_timeout;
  auto job = services.embedder.start(std::move(embed), call.wake);
  return std::make_unique<EmbeddingAnswer>(services.workers, std::move(job), std::move(write), ignored_header(ignored),
                                           model_header(services.embedder.model_name()), std::move(call));
}

std::unique_ptr<Answer> embeddings(const Services& services, Call call, EmbeddingCall& parsed) {
  const Embedder& embedder = services.embedder;
  auto asked = std::make_shared<EmbeddingCall>(std::move(parsed));
  if (const auto error = services.names.refuse_to_embed(asked->model)) return answer_now(call, error_response(*error));
  call.record->set_user(asked->user);
  return start(services, call, std::move(asked->inputs), asked->ignored,
               [asked, &embedder](const Embedded& e) { return embedding_body(*asked, e, embedder.model_name()); });
}

std::unique_ptr<Answer> rerank(const Services& services, Call call, RerankCall& parsed) {
  auto asked = std::make_shared<RerankCall>(std::move(parsed));
  if (const auto error = services.names.refuse_to_embed(asked->model)) return answer_now(call, error_response(*error));
  call.record->set_user(asked->user);
  const bool scored = services.embedder.scores_pairs();
  std::vector<orchestrator::EmbedInput> inputs;
  if (!scored) inputs.push_back({asked->query});
  for (const std::string& document : asked->documents) {
    orchestrator::EmbedInput& input = inputs.emplace_back();
    input.text = scored ? asked->query : document;
    if (scored) input.second = document;
  }
  return start(services, call, std::move(inputs), asked->ignored,
               [asked, scored, &embedder = services.embedder](const Embedded& e) {
                 return rerank_body(*asked, e, scored, embedder.model_name());
               });
}

}  // namespace

void add_embedding_endpoints(Router& router, const Services& services) {
  const Embedder& embedder = services.embedder;
  add_parsed_route(
      router, services, "/v1/embeddings",
      [&embedder](const std::string& body) { return parse_embedding_call(body, embedder.dimensions()); }, embeddings);
  add_parsed_route(router, services, "/v1/rerank", parse_rerank_call, rerank);
}

}  // namespace chimere::server

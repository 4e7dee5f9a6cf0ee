#include "server/protocols/shared/embedding_answer.h"

#include <utility>

#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {
namespace {

using orchestrator::Embedded;
using orchestrator::EmbedJob;

// Waits for the vectors and makes an answer of them.
class EmbeddingAnswer : public Answer {
 public:
  EmbeddingAnswer(std::shared_ptr<Workers> workers, std::unique_ptr<EmbedJob> job, EmbeddingWriter write,
                  ErrorWriter write_error, std::string ignored, std::string model, Call call)
      : workers_(std::move(workers)),
        job_(std::move(job)),
        write_(std::move(write)),
        write_error_(write_error),
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
    if (!*text) return whole(write_error_(failed_work(text->error())));
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
    return write_error_(error.code == Code::cancelled ? call_.record->cancel_error() : to_api_error(error));
  }
  Piece whole(HttpResponse response) {
    if (!ignored_.empty()) response.add_header("X-Chimere-Ignored", ignored_);
    response.add_header("X-Chimere-Model", model_);
    call_.record->set_status(response.status);
    return {std::move(response), {}, true};
  }

  const std::shared_ptr<Workers> workers_;
  std::unique_ptr<EmbedJob> job_;
  const EmbeddingWriter write_;
  const ErrorWriter write_error_;
  const std::string ignored_;
  const std::string model_;
  Call call_;
  std::unique_ptr<orchestrator::ServiceJob<std::string>> writing_;
};

}  // namespace

std::unique_ptr<Answer> answer_embedded(const Services& services, orchestrator::Embedder& embedder, Call& call,
                                        std::vector<orchestrator::EmbedInput> inputs,
                                        const std::vector<std::string>& ignored, EmbeddingWriter write,
                                        ErrorWriter write_error) {
  orchestrator::EmbedCall embed;
  embed.inputs = std::move(inputs);
  embed.owner = Services::owner_of(call);
  if (services.request_timeout.count() > 0) embed.deadline = call.record->started() + services.request_timeout;
  auto job = embedder.start(std::move(embed), call.wake);
  return std::make_unique<EmbeddingAnswer>(services.workers, std::move(job), std::move(write), write_error,
                                           ignored_header(ignored), model_header(embedder.model_name()),
                                           std::move(call));
}

}  // namespace chimere::server

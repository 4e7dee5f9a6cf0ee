// embedder.cpp  Texts on their way to the engine, and vectors on their way back.
#include "orchestrator/embedder.h"

#include <exception>
#include <utility>

#include "models/config.h"

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxTextsPreparing = 64;

}  // namespace

bool EmbedJob::Box::put(engine::SubmittedEmbed submitted, int32_t n_tokens) {
  std::lock_guard lock(mutex_);
  if (cancelled_) return false;
  submitted_ = std::move(submitted);
  n_tokens_ = n_tokens;
  return true;
}

void EmbedJob::Box::fail(Error error) {
  {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  ring();
}

void EmbedJob::Box::ring() const {
  if (notify_) notify_();
}

std::optional<Result<Embedded>> EmbedJob::Box::take() {
  std::lock_guard lock(mutex_);
  if (error_) {
    std::optional<Result<Embedded>> failed(std::in_place, std::move(*error_));
    error_.reset();
    return failed;
  }
  if (!submitted_) return std::nullopt;
  auto vectors = submitted_->result->take();
  if (!vectors) return std::nullopt;
  submitted_.reset();
  if (!*vectors) return Result<Embedded>{vectors->error()};
  return Result<Embedded>{Embedded{std::move(**vectors), n_tokens_}};
}

std::optional<engine::RequestId> EmbedJob::Box::cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (!submitted_) return std::nullopt;
  return submitted_->id;
}

bool EmbedJob::Box::is_cancelled() const {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

void EmbedJob::cancel() {
  if (const auto id = box_->cancel()) engine_.cancel(*id);
}

Result<engine::Pooling> pooling_of(const models::Model& model) {
  const std::string key = model.architecture() + ".pooling_type";
  TRY_ASSIGN(const int64_t type, model.metadata().get_int_or(key, 0, 1000, 0));
  // Many files of rerankers do not say how they are meant.
  if (model.scores_pairs() && (type == 0 || type == models::kRankPooling)) return engine::Pooling::score;
  switch (type) {
    case 0:
    case 1: return engine::Pooling::mean;
    case 2: return engine::Pooling::first;
    case 3: return engine::Pooling::last;
    default: break;
  }
  return Error{Code::unsupported, key + ": expected 1 (mean), 2 (first token) or 3 (last token), found " +
                                      std::to_string(type) +
                                      (type == models::kRankPooling ? " (a head for ranking, which it lacks)" : "")};
}

Embedder::Embedder(const models::Model& model, const Tokenizer& tokenizer, engine::Engine& engine,
                   engine::Pooling pooling)
    : model_(model), tokenizer_(tokenizer), engine_(engine), pooling_(pooling), prepare_(kMaxTextsPreparing) {}

Result<engine::EmbedRequest> Embedder::prepare(EmbedCall call) const {
  engine::EmbedRequest request;
  request.pooling = pooling_;
  request.owner = call.owner;
  request.deadline = call.deadline;
  try {
    for (EmbedInput& input : call.inputs) {
      if (input.second) {
        Tokenizer::Pair pair = tokenizer_.encode_pair(input.text, *input.second);
        request.texts.push_back(std::move(pair.ids));
        request.second_at.push_back(pair.second_at);
        continue;
      }
      if (scores_pairs()) {
        return Error{Code::invalid_argument, "'" + model_.name() + "' scores pairs of texts and has no embeddings"};
      }
      request.texts.push_back(input.ids.empty() ? tokenizer_.encode(input.text, EncodeMode::plain, true)
                                                : std::move(input.ids));
    }
  } catch (const std::exception& e) {
    return Error{Code::internal, std::string("preparing the texts: ") + e.what()};
  }
  return Result<engine::EmbedRequest>{std::move(request)};
}

std::unique_ptr<EmbedJob> Embedder::start(EmbedCall call, std::function<void()> notify) {
  auto box = std::make_shared<EmbedJob::Box>(std::move(notify));
  auto shared = std::make_shared<EmbedCall>(std::move(call));
  const uint64_t owner = shared->owner;
  auto job = [this, box, shared](bool go_on) {
    if (!go_on || box->is_cancelled()) return box->fail({Code::cancelled, "the request was cancelled"});
    auto request = prepare(std::move(*shared));
    if (!request) return box->fail(request.error());
    int32_t n_tokens = 0;
    for (const auto& text : request->texts) n_tokens += static_cast<int32_t>(text.size());
    auto submitted = engine_.embed(std::move(*request), [box] { box->ring(); });
    if (!submitted) return box->fail(submitted.error());
    const engine::RequestId id = submitted->id;
    if (!box->put(std::move(*submitted), n_tokens)) {
      engine_.cancel(id);
      return box->fail({Code::cancelled, "the request was cancelled"});
    }
    box->ring();  // the answer may have come before it was put where it is looked for
  };
  if (!prepare_.post(std::move(job), owner)) box->fail(prepare_.full());
  return std::make_unique<EmbedJob>(engine_, std::move(box));
}

Result<Embedded> Embedder::embed_now(EmbedCall call) {
  TRY_ASSIGN(engine::EmbedRequest request, prepare(std::move(call)));
  Embedded embedded;
  for (const auto& text : request.texts) embedded.n_tokens += static_cast<int32_t>(text.size());
  TRY_ASSIGN(engine::SubmittedEmbed submitted, engine_.embed(std::move(request)));
  TRY_ASSIGN(embedded.vectors, submitted.result->wait());
  return Result<Embedded>{std::move(embedded)};
}

EmbeddingModel::EmbeddingModel(std::unique_ptr<models::Model> model, Tokenizer tokenizer)
    : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {}

EmbeddingModel::~EmbeddingModel() = default;

Result<std::unique_ptr<EmbeddingModel>> EmbeddingModel::open(std::unique_ptr<models::Model> model,
                                                             engine::EngineConfig config) {
  TRY_ASSIGN(Tokenizer tokenizer, Tokenizer::from_metadata(model->metadata()));
  TRY_ASSIGN(const engine::Pooling pooling, pooling_of(*model));
  std::unique_ptr<EmbeddingModel> opened(new EmbeddingModel(std::move(model), std::move(tokenizer)));
  opened->engine_ = std::make_unique<engine::Engine>(*opened->model_, std::move(config));
  opened->embedder_ = std::make_unique<Embedder>(*opened->model_, opened->tokenizer_, *opened->engine_, pooling);
  return Result<std::unique_ptr<EmbeddingModel>>{std::move(opened)};
}

}  // namespace chimere::orchestrator

// embedder.cpp  Texts on their way to the engine, and vectors on their way back.
#include "orchestrator/embedder.h"

#include <exception>
#include <utility>

#include "models/config.h"

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxTextsPreparing = 64;
constexpr double kMaxVectorWeight = 100;
constexpr double kMaxScoreWeight = 1000;
constexpr int64_t kMaxHopTokens = 4096;

}  // namespace

EmbedJob::~EmbedJob() {
  // What is put later is cancelled by who puts it.
  for (const auto& unread : admission_->close()) {
    if (unread) engine_.cancel(unread->submitted.id);
  }
  if (started_) engine_.cancel(started_->submitted.id);
}

void EmbedJob::cancel() {
  admission_->cancel();
  if (started_) engine_.cancel(started_->submitted.id);
}

std::optional<Result<Embedded>> EmbedJob::poll() {
  if (!started_) {
    auto started = admission_->take();
    if (!started) return std::nullopt;
    if (!*started) return Result<Embedded>{started->error()};
    started_.emplace(std::move(**started));
    if (admission_->is_cancelled()) engine_.cancel(started_->submitted.id);
  }
  auto vectors = started_->submitted.result->take();
  if (!vectors) return std::nullopt;
  const int32_t n_tokens = started_->n_tokens;
  started_.reset();
  if (!*vectors) return Result<Embedded>{vectors->error()};
  return Result<Embedded>{Embedded{std::move(**vectors), n_tokens}};
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

Result<VectorUse> vector_use_of(const models::Model& model) {
  const auto& metadata = model.metadata();
  const auto number = [&metadata](const char* key, double least, double most, double usual) -> Result<double> {
    TRY_ASSIGN(const double found, metadata.get_float_or(key, usual));
    if (found >= least && found <= most) return found;
    return Error{Code::invalid_argument, std::string(key) + ": expected " + std::to_string(least) + " to " +
                                             std::to_string(most) + ", found " + std::to_string(found)};
  };
  TRY_ASSIGN(const int64_t pooling, metadata.get_int_or(model.architecture() + ".pooling_type", 0, 1000, 0));
  VectorUse use;
  TRY_ASSIGN(use.weight, number("chimere.retrieval.vector_weight", 0, kMaxVectorWeight,
                                model.is_encoder() || pooling != 0 ? 1 : 0));
  TRY_ASSIGN(use.least_cosine, number("chimere.retrieval.least_cosine", -1, 1, -1));
  if (metadata.contains("chimere.retrieval.score_weight")) {
    TRY_ASSIGN(use.score_weight, number("chimere.retrieval.score_weight", 0, kMaxScoreWeight, 0));
  }
  TRY_ASSIGN(const int64_t hop, metadata.get_int_or("chimere.retrieval.hop_tokens", 0, kMaxHopTokens, 0));
  TRY_ASSIGN(const int64_t kept,
             metadata.get_int_or("chimere.retrieval.dimensions", 1, model.d_model(), model.d_model()));
  use.hop_tokens = static_cast<int>(hop);
  use.dimensions = static_cast<int>(kept);
  TRY_ASSIGN(const engine::Pooling made_by, pooling_of(model));
  if (hop > 0 && made_by != engine::Pooling::mean) {
    return Error{Code::invalid_argument,
                 "chimere.retrieval.hop_tokens: expected a model whose vectors are means, found "
                 "pooling_type " +
                     std::to_string(pooling)};
  }
  return use;
}

Embedder::Embedder(const models::Model& model, const Tokenizer& tokenizer, engine::Engine& engine,
                   engine::Pooling pooling)
    : model_(model), tokenizer_(tokenizer), engine_(engine), pooling_(pooling), prepare_(kMaxTextsPreparing) {}

VectorUse Embedder::vector_use() const {
  const auto use = vector_use_of(model_);
  return use ? *use : VectorUse();
}

EmbedInput Embedder::cut_to_fit(const std::string& text) const {
  std::vector<int32_t> ids = tokenizer_.encode(text, EncodeMode::plain, true);
  const auto most = static_cast<size_t>(context_length());
  if (ids.size() > most) ids.resize(most);
  return {text, std::move(ids)};
}

Result<engine::EmbedRequest> Embedder::prepare(EmbedCall call) const {
  engine::EmbedRequest request;
  request.pooling = pooling_;
  request.owner = call.owner;
  request.hop_tokens = call.hop_tokens;
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
  auto admission = std::make_shared<EmbedJob::Admission>(std::move(notify));
  auto shared = std::make_shared<EmbedCall>(std::move(call));
  const uint64_t owner = shared->owner;
  const auto submit = [this, admission, shared]() -> Result<EmbedJob::Started> {
    TRY_ASSIGN(engine::EmbedRequest request, prepare(std::move(*shared)));
    EmbedJob::Started started;
    for (const auto& text : request.texts) started.n_tokens += static_cast<int32_t>(text.size());
    TRY_ASSIGN(started.submitted, engine_.embed(std::move(request), [admission] { admission->ring(); }));
    return Result<EmbedJob::Started>{std::move(started)};
  };
  auto job = [this, admission, submit](bool go_on) {
    const bool is_wanted = go_on && !admission->is_cancelled();
    auto started = is_wanted ? submit() : Error{Code::cancelled, "the request was cancelled"};
    const engine::RequestId id = started ? started->submitted.id : 0;  // 0: none
    if (!admission->put(std::move(started)) && id != 0) engine_.cancel(id);
  };
  if (!prepare_.post(std::move(job), owner)) admission->put(prepare_.full());
  return std::make_unique<EmbedJob>(engine_, std::move(admission));
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
  TRY(vector_use_of(*model));
  std::unique_ptr<EmbeddingModel> opened(new EmbeddingModel(std::move(model), std::move(tokenizer)));
  opened->engine_ = std::make_unique<engine::Engine>(*opened->model_, std::move(config));
  opened->embedder_ = std::make_unique<Embedder>(*opened->model_, opened->tokenizer_, *opened->engine_, pooling);
  return Result<std::unique_ptr<EmbeddingModel>>{std::move(opened)};
}

}  // namespace chimere::orchestrator

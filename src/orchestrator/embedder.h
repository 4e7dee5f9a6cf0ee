// embedder.h  Texts to vectors, pairs of texts to scores: tokenized on a thread of their own, run in batches by an
// engine.
//
// Any model can embed: an encoder or an embedding model as its file says, another one by the mean of its hidden states.
// A reranker alone scores pairs, and does nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/channel.h"
#include "base/result.h"
#include "engine/engine.h"
#include "orchestrator/prepare_thread.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

struct EmbedInput {
  std::string text;
  std::vector<int32_t> ids = {};           // instead of the text where there are some, as they are
  std::optional<std::string> second = {};  // the text to score with the first, by models that do
};

struct EmbedCall {
  std::vector<EmbedInput> inputs;  // all of them pairs, or none
  int hop_tokens = 0;              // of windows (engine/embedding.h); 0: one vector a text
  uint64_t owner = 0;              // whose it is
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct Embedded {
  engine::Vectors vectors;  // one an input, of length 1; of pairs one score each
  int32_t n_tokens = 0;     // of all inputs
};

// A call under way. Read by one thread at a time.
class EmbedJob {
 public:
  struct Started {
    engine::SubmittedEmbed submitted;
    int32_t n_tokens = 0;
  };
  // From the thread that prepares: one value, and a ring when the engine has the answer.
  using Admission = Channel<Result<Started>>;

  EmbedJob(engine::Engine& engine, std::shared_ptr<Admission> admission)
      : engine_(engine), admission_(std::move(admission)) {}
  // Cancels what still runs.
  ~EmbedJob();
  EmbedJob(const EmbedJob&) = delete;
  EmbedJob& operator=(const EmbedJob&) = delete;

  // The answer, once; nullopt before.
  std::optional<Result<Embedded>> poll();
  // An error follows, unless the answer is there already.
  void cancel();

 private:
  engine::Engine& engine_;
  std::shared_ptr<Admission> admission_;
  std::optional<Started> started_;  // and not answered
};

// How a file says its vectors are made; the mean of all states where it does not, the score where the model has a head
// for it.
Result<engine::Pooling> pooling_of(const models::Model& model);

// How searches use its vectors, as the file says (docs/retrieval.md).
struct VectorUse {
  // What a cosine of 1 counts in points of BM25, where both are added: chimere.retrieval.score_weight. None: ranks are
  // fused.
  std::optional<double> score_weight = {};
  // Of ranks by vectors, beside 1 for those by words: chimere.retrieval.vector_weight, else 1. 0 for a model that was not
  // made to embed, as fitted for the model in the box; what words do not find, vectors still put behind it.
  double weight = 1;
  double least_cosine = -1;  // chimere.retrieval.least_cosine: texts that are less near are not found
  int hop_tokens = 0;        // chimere.retrieval.hop_tokens: chunks are embedded by windows of two hops; 0: whole
  int dimensions = 0;        // chimere.retrieval.dimensions: so many values of a vector are kept, of length 1 again
};
Result<VectorUse> vector_use_of(const models::Model& model);

class Embedder {
 public:
  // All of them outlive the embedder.
  Embedder(const models::Model& model, const Tokenizer& tokenizer, engine::Engine& engine, engine::Pooling pooling);

  // Never blocks and never refuses: what can not run ends in an error. `notify` is called from other threads whenever
  // poll() may have something new, also shortly after the job is gone.
  std::unique_ptr<EmbedJob> start(EmbedCall call, std::function<void()> notify = {});

  // Pairs get a score; single texts are refused.
  bool scores_pairs() const { return pooling_ == engine::Pooling::score; }
  // What start() gives, prepared on the calling thread, which waits for the answer. Not the engine's thread.
  Result<Embedded> embed_now(EmbedCall call);

  // A text to embed: where all of it does not fit, its beginning, which tells what it is about.
  EmbedInput cut_to_fit(const std::string& text) const;
  // vector_use_of(); the usual where the file has none that it may have.
  VectorUse vector_use() const;
  engine::EngineStats engine_stats() const { return engine_.stats(); }
  const std::string& model_name() const { return model_.name(); }
  uint64_t model_fingerprint() const { return model_.fingerprint(); }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  int dimensions() const { return engine_.d_model(); }
  int context_length() const { return engine_.context_length(); }

 private:
  Result<engine::EmbedRequest> prepare(EmbedCall call) const;

  const models::Model& model_;
  const Tokenizer& tokenizer_;
  engine::Engine& engine_;
  const engine::Pooling pooling_;
  // Its own: who has many long texts embedded holds up nobody's prompt. Ends first, as its jobs use the others.
  PrepareThread prepare_;
};

// A model of its own for embeddings, beside the one that chats.
class EmbeddingModel {
 public:
  static Result<std::unique_ptr<EmbeddingModel>> open(std::unique_ptr<models::Model> model,
                                                      engine::EngineConfig config);
  ~EmbeddingModel();
  Embedder& embedder() { return *embedder_; }

 private:
  EmbeddingModel(std::unique_ptr<models::Model> model, Tokenizer tokenizer);

  std::unique_ptr<models::Model> model_;
  Tokenizer tokenizer_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Embedder> embedder_;
};

}  // namespace chimere::orchestrator

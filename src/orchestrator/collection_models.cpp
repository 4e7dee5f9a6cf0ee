#include "orchestrator/collection_models.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "text/utf8.h"

namespace chimere::orchestrator {
namespace {

// Of a pair, beside the question: longer than any chunk, and shorter than what encoders are made for.
constexpr size_t kMaxScoredBytes = 1600;
constexpr size_t kMaxQuestionBytes = 400;

// The first `kept` of every `all` values, each so many of length 1 again.
std::vector<float> shortened(const std::vector<float>& vectors, size_t all, size_t kept) {
  std::vector<float> out;
  out.reserve(vectors.size() / all * kept);
  for (size_t at = 0; at < vectors.size(); at += all) {
    double squares = 0;
    for (size_t j = 0; j < kept; ++j) squares += double{vectors[at + j]} * vectors[at + j];
    const double norm = squares > 0 ? std::sqrt(squares) : 1;
    for (size_t j = 0; j < kept; ++j) out.push_back(static_cast<float>(vectors[at + j] / norm));
  }
  return out;
}

}  // namespace

retrieval::TextEmbedder text_embedder(Embedder& embedder) {
  using Deadline = retrieval::TextEmbedder::Deadline;
  const VectorUse use = embedder.vector_use();
  const int all = embedder.dimensions(), kept = use.dimensions > 0 ? use.dimensions : all;
  const auto by_windows = [&embedder, all, kept](int hop_tokens) {
    return [&embedder, all, kept, hop_tokens](std::span<const std::string> texts,
                                              Deadline deadline) -> Result<engine::Vectors> {
      EmbedCall call;
      call.hop_tokens = hop_tokens;
      call.deadline = deadline;
      for (const std::string& text : texts) call.inputs.push_back(embedder.cut_to_fit(text));
      TRY_ASSIGN(Embedded done, embedder.embed_now(std::move(call)));
      for (std::vector<float>& vectors : done.vectors) {
        if (kept < all) vectors = shortened(vectors, static_cast<size_t>(all), static_cast<size_t>(kept));
      }
      return Result<engine::Vectors>{std::move(done.vectors)};
    };
  };
  retrieval::TextEmbedder made{
      embedder.model_fingerprint(), kept, embedder.model_name(), by_windows(0), use.weight, use.least_cosine};
  made.score_weight = use.score_weight;
  if (use.hop_tokens > 0) made.embed_windows = by_windows(use.hop_tokens);
  return made;
}

retrieval::PairScorer pair_scorer(Embedder& embedder) {
  CHECK(embedder.scores_pairs());
  return [&embedder](const std::string& question, std::span<const std::string> texts,
                     retrieval::TextEmbedder::Deadline deadline) -> Result<std::vector<float>> {
    EmbedCall call;
    call.deadline = deadline;
    const std::string asked = question.substr(0, utf8_floor(question, kMaxQuestionBytes));
    for (const std::string& text : texts) {
      call.inputs.push_back({asked, {}, text.substr(0, utf8_floor(text, kMaxScoredBytes))});
    }
    TRY_ASSIGN(const Embedded done, embedder.embed_now(std::move(call)));
    std::vector<float> scores;
    for (const std::vector<float>& score : done.vectors) scores.push_back(score[0]);
    return Result<std::vector<float>>{std::move(scores)};
  };
}

}  // namespace chimere::orchestrator

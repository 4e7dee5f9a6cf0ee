#include "orchestrator/collection_models.h"

#include <string_view>
#include <utility>

#include "base/check.h"
#include "text/utf8.h"

namespace chimere::orchestrator {
namespace {

// Of a pair, beside the question: longer than any chunk, and shorter than what encoders are made for.
constexpr size_t kMaxScoredBytes = 1600;
constexpr size_t kMaxQuestionBytes = 400;

}  // namespace

retrieval::TextEmbedder text_embedder(Embedder& embedder) {
  using Deadline = retrieval::TextEmbedder::Deadline;
  const auto embed = [&embedder](std::span<const std::string> texts, Deadline deadline) -> Result<engine::Vectors> {
    EmbedCall call;
    call.deadline = deadline;
    for (const std::string& text : texts) call.inputs.push_back(embedder.cut_to_fit(text));
    TRY_ASSIGN(Embedded done, embedder.embed_now(std::move(call)));
    return Result<engine::Vectors>{std::move(done.vectors)};
  };
  const VectorUse use = embedder.vector_use();
  return {
      embedder.model_fingerprint(), embedder.dimensions(), embedder.model_name(), embed, use.weight, use.least_cosine};
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

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

// Of a model that was trained to continue texts: as fitted for the model in the box (docs/retrieval.md). What words do not
// find, vectors still put behind it.
constexpr double kUntrainedWeight = 0;

}  // namespace

retrieval::TextEmbedder text_embedder(Embedder& embedder) {
  using Deadline = retrieval::TextEmbedder::Deadline;
  const auto embed = [&embedder](std::span<const std::string> texts, Deadline deadline) -> Result<engine::Vectors> {
    EmbedCall call;
    call.deadline = deadline;
    for (const std::string& text : texts) {
      std::vector<int32_t> ids = embedder.tokenizer().encode(text, EncodeMode::plain, true);
      // What a text is about is told by its beginning where all of it does not fit.
      const auto most = static_cast<size_t>(embedder.context_length());
      if (ids.size() > most) ids.resize(most);
      call.inputs.push_back({text, std::move(ids)});
    }
    TRY_ASSIGN(Embedded done, embedder.embed_now(std::move(call)));
    return Result<engine::Vectors>{std::move(done.vectors)};
  };
  return {embedder.model_fingerprint(), embedder.dimensions(), embedder.model_name(), embed,
          embedder.is_made_to_embed() ? 1 : kUntrainedWeight};
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

#include "orchestrator/passage_memory.h"

#include <algorithm>

#include "engram/edit.h"
#include "tokenizer/fingerprint.h"

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxQueryTokens = 256;  // the end of a question; a passage is of about that length too

}  // namespace

Result<Embedder*> PassageMemory::embedder_of(const retrieval::PassageIndex& index, const std::string& name) const {
  for (Embedder* embedder : embedders_) {
    if (embedder->model_fingerprint() == index.model() && embedder->dimensions() == index.dimensions()) return embedder;
  }
  return Error{Code::invalid_argument,
               "engram.passages: '" + name +
                   "' was embedded by a model that is not running here; serve it with --embedding-model, or embed the "
                   "passages anew"};
}

Result<PassageMemory::Found> PassageMemory::find(const MemoryUse& use, const std::string& query,
                                                 std::chrono::steady_clock::time_point deadline) const {
  Found found;
  if (use.passages.empty()) return found;
  if (!library_) {
    return Error{Code::invalid_argument, "engram.passages: this server has no passages; start it with --engram FOLDER"};
  }
  TRY_ASSIGN(const std::shared_ptr<const retrieval::PassageIndex> index, library_->open(use.passages, use.owner));
  TRY_ASSIGN(Embedder * embedder, embedder_of(*index, use.passages));
  if (use.alpha <= 0 || query.empty() || index->size() == 0) return found;
  EmbedCall call;
  call.deadline = deadline;
  std::vector<int32_t> ids = embedder->tokenizer().encode(query, EncodeMode::plain, true);
  const size_t most = std::min(kMaxQueryTokens, static_cast<size_t>(embedder->context_length()));
  if (ids.size() > most) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  call.inputs.push_back({query, std::move(ids)});
  TRY_ASSIGN(const Embedded embedded, embedder->embed_now(std::move(call)));
  for (const auto& match : index->nearest(embedded.vectors[0], static_cast<size_t>(use.top_passages))) {
    const float weight = std::clamp(match.score, 0.0f, 1.0f);
    if (weight <= 0) break;
    TRY_ASSIGN(auto table,
               engram::table_of_text(shape(), tokenizer_.encode(match.passage->text, EncodeMode::plain, false)));
    found.tables.push_back({std::move(table), weight});
    found.used.push_back({match.passage->source, match.passage->text, match.score});
  }
  return Result<Found>{std::move(found)};
}

Status PassageMemory::join(const std::vector<LookedUp>& looked_up, Found& found) const {
  for (const LookedUp& text : looked_up) {
    if (text.weight > 0) {
      TRY_ASSIGN(auto table, engram::table_of_text(shape(), tokenizer_.encode(text.text, EncodeMode::plain, false)));
      found.tables.push_back({std::move(table), std::min(text.weight, 1.0f)});
    }
    found.used.push_back({text.source, text.text, text.weight});
  }
  return Ok{};
}

engram::TableShape PassageMemory::shape() const {
  return {{vocabulary_fingerprint(tokenizer_), static_cast<uint32_t>(tokenizer_.n_vocab())},
          engram::kMinOrder,
          engram::kMaxOrder};
}

}  // namespace chimere::orchestrator

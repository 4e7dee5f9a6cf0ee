// collection_models.h  Models of ours as what collections ask for: texts to vectors, and pairs of texts to scores.
#pragma once

#include "orchestrator/embedder.h"
#include "retrieval/collection_types.h"

namespace chimere::orchestrator {

// The embedder outlives what is made of it. Texts that are too long are cut at their end. Both block: not on the engine's
// thread.
retrieval::TextEmbedder text_embedder(Embedder& embedder);
// REQUIRES: scores_pairs().
retrieval::PairScorer pair_scorer(Embedder& embedder);

}  // namespace chimere::orchestrator

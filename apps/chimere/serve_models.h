// serve_models.h  The models that `chimere serve` opens: the one that answers, and those beside it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "orchestrator/chat_service.h"
#include "orchestrator/embedder.h"
#include "serve_options.h"
#include "server/shelf/model_shelf.h"

namespace chimere::apps {

// What was learned from answers, and what of it is in use.
struct LearnedParts {
  std::shared_ptr<improve::ArtefactStore> store;  // null: nothing is
  std::shared_ptr<improve::InUse> in_use = nullptr;
};

// The model with everything it was asked to have beside it.
Result<std::unique_ptr<orchestrator::ChatService>> open_model(const ServeOptions& o, const ModelOptions& options,
                                                              const std::string& chat_template,
                                                              const server::ModelShelf::Progress& progress = {},
                                                              LearnedParts* learned = nullptr);

// Of --vram: two models on one card share it, and the one for embeddings is the small one.
uint64_t companion_vram(const ServeOptions& o, const std::string& file);
// Null when no file was named. Its threads are its own and sleep while nobody asks.
Result<std::unique_ptr<orchestrator::EmbeddingModel>> open_companion(const ServeOptions& o, const std::string& file);
// That of the box is small, and leaves the card to the others.
Result<std::unique_ptr<orchestrator::EmbeddingModel>> open_embedder(const ServeOptions& o);
// The model that judges; null: none was given.
Result<std::unique_ptr<orchestrator::ChatService>> open_prm(const ServeOptions& o);

// Without a word about states, they fill no more than a quarter of the memory that was named.
void fit_states(ServeOptions& o);
// What --ram leaves for weights beside states and cached prompts.
Result<uint64_t> weights_ram(ServeOptions& o);

}  // namespace chimere::apps

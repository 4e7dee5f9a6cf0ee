// encoder_for_test.h  A tiny encoder of random weights, as a model for embeddings beside the one that chats.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "orchestrator/embedder.h"

namespace chimere::server {

inline constexpr const char* kEncoder = CHIMERE_TESTS_DIR "/golden/models/bert-mean/model.gguf";

inline std::unique_ptr<orchestrator::EmbeddingModel> open_encoder(const char* path = kEncoder) {
  LoadOptions options;
  options.max_rows = 256;
  options.n_threads = 2;
  auto model = models::Model::load(path, models::BackendKind::cpu, options);
  EXPECT_TRUE(model) << model.error().message;
  auto opened = orchestrator::EmbeddingModel::open(std::move(*model), {});
  EXPECT_TRUE(opened) << opened.error().message;
  return std::move(*opened);
}

}  // namespace chimere::server

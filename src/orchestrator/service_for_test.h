// service_for_test.h  The model in the box behind a service, for tests of those who ask it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "orchestrator/chat_service.h"
#include "orchestrator/models_for_test.h"

namespace chimere::orchestrator {

// Null, and a failed test, when it can not be loaded.
inline std::unique_ptr<ChatService> service_in_the_box(int context_length) {
  LoadOptions options;
  options.max_rows = 256;
  auto model = models::Model::load(kModelInTheBox, models::BackendKind::cpu, options);
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return nullptr;
  auto chat_model = ChatModel::from_model(std::move(*model));
  EXPECT_TRUE(chat_model) << chat_model.error().message;
  if (!chat_model) return nullptr;
  engine::EngineConfig config;
  config.context_length = context_length;
  return std::make_unique<ChatService>(std::move(*chat_model), config);
}

// A question without a thought, answered by the likeliest words, as a caller who says so asks it.
inline ChatRequest plain_question(const std::string& text, int32_t max_tokens) {
  ChatRequest request;
  request.messages.emplace_back();
  request.messages.back().role = "user";
  request.messages.back().content = text;
  request.sampling.temperature = 0;
  request.max_tokens = max_tokens;
  request.enable_thinking = false;
  request.given = {"temperature", "max_tokens", "enable_thinking"};
  return request;
}

}  // namespace chimere::orchestrator

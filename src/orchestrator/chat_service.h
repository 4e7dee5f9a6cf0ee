// chat_service.h  The border between those who speak in messages (server/, the chat command) and the engine, which
// speaks in token ids.
//
//   ChatRequest -> Preparer (preparer.h) -> engine::Request
//   engine::Event -> text -> stop strings -> reasoning, content, tool calls -> ChatChunk
//
// Rendering and tokenizing run on threads of the service, so that a long prompt stalls nobody's I/O; owners take turns
// there. Text is made on the thread that polls the stream. Every request ends in exactly one terminal chunk.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "orchestrator/chat_model.h"
#include "orchestrator/chat_request.h"
#include "orchestrator/chat_stream.h"
#include "orchestrator/embedder.h"
#include "orchestrator/memory_service.h"
#include "orchestrator/model_info.h"
#include "orchestrator/prepare_thread.h"
#include "orchestrator/preparer.h"
#include "orchestrator/token_job.h"

namespace chimere::orchestrator {

class ChatService {
 public:
  ChatService(ChatModel model, engine::EngineConfig config);
  // Ends every request. Streams do not outlive the service.
  ~ChatService() = default;
  ChatService(const ChatService&) = delete;
  ChatService& operator=(const ChatService&) = delete;

  // Never blocks and never refuses: what can not run ends as a failed stream. `notify` is called from other threads
  // whenever poll() may have something new, also shortly after the stream is gone.
  std::unique_ptr<ChatStream> start(ChatRequest request, std::function<void()> notify = {});
  // `n` answers to one prompt. The others are forks of the first one and begin when it has read the prompt.
  std::vector<std::unique_ptr<ChatStream>> start(ChatRequest request, int n, std::function<void()> notify);
  // Continues a text as it is; all of the answer is content.
  std::unique_ptr<ChatStream> complete(CompletionRequest request, std::function<void()> notify = {});
  std::vector<std::unique_ptr<ChatStream>> complete(CompletionRequest request, int n, std::function<void()> notify);

  // The ids of a prompt that is not run; the same rules for `notify`.
  std::unique_ptr<TokenJob> tokenize(ChatRequest request, std::function<void()> notify);
  std::unique_ptr<TokenJob> tokenize(std::string text, bool add_special, std::function<void()> notify,
                                     uint64_t owner = 0);
  // The text of such a prompt, which complete() would continue in the same way.
  std::unique_ptr<ServiceJob<std::string>> render(ChatRequest request, std::function<void()> notify);

  // Forgets what is kept of an owner's prompts, or of all prompts; the same rules for `notify`.
  std::unique_ptr<ServiceJob<CacheUse>> clear_cache(std::optional<uint64_t> owner, std::function<void()> notify);
  // Gives the card's memory to other programs (engine::Engine::sleep); gives the bytes. The same rules for `notify`.
  std::unique_ptr<ServiceJob<uint64_t>> sleep(std::function<void()> notify);
  std::unique_ptr<ServiceJob<Ok>> wake(std::function<void()> notify);
  // Reads an adapter on the service's thread, so that a large file stalls nobody's I/O.
  std::unique_ptr<ServiceJob<Ok>> load_adapter(std::string name, std::string path, float scale, std::string owner,
                                               std::function<void()> notify);

  // What users taught and may take back, and the passages there are.
  MemoryService& memory() { return memory_; }
  // Vectors of this model, for those who have no other.
  Embedder& embedder() { return embedder_; }
  // LoRA adapters that requests may name. Use it from any thread.
  models::AdapterLibrary& adapters() { return *model_.adapters; }
  // To be looked at: its load, its requests, its limits.
  const engine::Engine& engine() const { return engine_; }
  int context_length() const { return engine_.context_length(); }
  const ModelInfo& model_info() const { return model_info_; }
  const Defaults& defaults() const { return model_.defaults; }
  const Tokenizer& tokenizer() const { return model_.tokenizer; }
  // What ends a thought of this model; empty where it has no template.
  std::string thought_close() const {
    return model_.chat_template ? std::string(model_.chat_template->thought_markers().close) : std::string();
  }

 private:
  std::vector<std::unique_ptr<ChatStream>> run(std::function<Result<Prepared>()> prepare, uint64_t owner, int n,
                                               std::function<void()> notify);
  void admit(Result<Prepared> prepared, const std::vector<std::shared_ptr<Admission>>& admissions);

  ChatModel model_;
  const ModelInfo model_info_;
  engine::Engine engine_;
  Embedder embedder_;
  MemoryService memory_;
  Preparer preparer_;  // of the thread `prepare_`
  // Who has many long texts tokenized holds up nobody's prompt. These two end first, as their jobs use the others.
  PrepareThread token_lane_, prepare_;
};

}  // namespace chimere::orchestrator

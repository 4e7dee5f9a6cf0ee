// chat_service.h  The border between those who speak in messages (server/, the chat command) and the engine, which
// speaks in token ids.
//
//   ChatRequest -> template -> spans -> ids -> engine::Request
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
#include "orchestrator/model_info.h"
#include "orchestrator/token_job.h"

namespace chimere::orchestrator {

class Constraints;
class PassageMemory;
class PrepareThread;

// A text that its user accepted.
struct LessonCall {
  std::string owner;  // whose table it is for
  std::string text;
  std::string source;  // name under which it can be forgotten
  float score = 5;     // 0 to 5
  float threshold = 3.5f;
};

struct Learned {
  bool learned = false;  // false: the score is below the threshold, or there is no room
  int32_t n_tokens = 0;
  uint64_t note = 0;    // the id of the note
  std::string no_room;  // which limit stands against it; empty: none
};

// What is to be forgotten of an owner: what a source taught, one note, or everything.
struct ForgetCall {
  std::string owner;
  std::string source;
  uint64_t note = 0;  // 0: not one note
  bool everything = false;
};

struct Forgotten {
  uint64_t sources = 0;
  uint64_t notes = 0;
  uint64_t ngrams = 0;  // that nobody else taught
};

// What requests of one owner may name, and how much of the room for what is learned is taken.
struct MemoryList {
  struct Table {
    std::string name;
    uint64_t n_ngrams = 0, n_tokens = 0;
  };
  std::vector<Table> tables;  // for all
  std::optional<Table> own;   // the owner's n-grams, of notes and of a table; without a name
  size_t n_notes = 0;         // the owner's
  std::vector<std::string> passages;
  retrieval::NoteLibrary::Usages used;
  std::optional<retrieval::NoteLimits> limits;  // none: nothing is learned here
};

class ChatService {
 public:
  ChatService(ChatModel model, engine::EngineConfig config);
  // Ends every request. Streams do not outlive the service.
  ~ChatService();
  ChatService(const ChatService&) = delete;
  ChatService& operator=(const ChatService&) = delete;

  // Never blocks and never refuses: what can not run ends as a failed stream. `notify` is called from other threads
  // whenever poll() may have something new, also shortly after the stream is gone.
  std::unique_ptr<ChatStream> start(ChatRequest request, std::function<void()> notify = {});
  // `n` answers to one prompt. The others begin when the first one has read it, and find its state in the cache.
  std::vector<std::unique_ptr<ChatStream>> start(ChatRequest request, int n, std::function<void()> notify);
  // Continues a text as it is; all of the answer is content.
  std::unique_ptr<ChatStream> complete(CompletionRequest request, std::function<void()> notify = {});
  std::vector<std::unique_ptr<ChatStream>> complete(CompletionRequest request, int n, std::function<void()> notify);

  // The ids of a prompt that is not run; the same rules for `notify`.
  std::unique_ptr<TokenJob> tokenize(ChatRequest request, std::function<void()> notify);
  std::unique_ptr<TokenJob> tokenize(std::string text, bool add_special, std::function<void()> notify,
                                     uint64_t owner = 0);

  // Keeps a text as a note of its owner, if its score is good enough; the same rules for `notify`. Lessons have a
  // thread of their own: nobody's prompt waits for one.
  std::unique_ptr<ServiceJob<Learned>> learn(LessonCall call, std::function<void()> notify);
  // not_found when there is nothing of the kind.
  std::unique_ptr<ServiceJob<Forgotten>> forget(ForgetCall call, std::function<void()> notify);
  std::unique_ptr<ServiceJob<std::vector<retrieval::Note>>> list_notes(std::string owner, std::function<void()> notify);
  // Of all owners; none where nothing is learned. Use it from any thread.
  std::optional<retrieval::NoteUsage> learned_usage() const;

  // The tables and passages there are for this owner.
  std::unique_ptr<ServiceJob<MemoryList>> list_memories(std::string owner, std::function<void()> notify);

  // Forgets what is kept of an owner's prompts, or of all prompts; the same rules for `notify`.
  std::unique_ptr<ServiceJob<CacheUse>> clear_cache(std::optional<uint64_t> owner, std::function<void()> notify);
  // Where prompts are kept on the disk; empty when they are not.
  std::string cache_folder() const { return engine_.cache_folder(); }

  // Another model's vectors, that files of passages may hold too. Before the first request; it outlives the service's
  // requests.
  void add_embedder(Embedder& embedder);
  // Vectors of this model, for those who have no other.
  Embedder& embedder() { return *embedder_; }
  // Reads an adapter on the service's thread, so that a large file stalls nobody's I/O. No ids when it is loaded.
  std::unique_ptr<TokenJob> load_adapter(std::string name, std::string path, float scale, std::string owner,
                                         std::function<void()> notify);

  const std::string& model_name() const { return model_.model->name(); }
  // Without one it continues text and answers no messages.
  bool has_template() const { return model_.chat_template.has_value(); }
  const SamplingParams& default_sampling() const { return model_.default_sampling; }
  const Tokenizer& tokenizer() const { return model_.tokenizer; }
  int context_length() const { return engine_.context_length(); }
  engine::EngineStats stats() const { return engine_.stats(); }
  std::vector<engine::RequestInfo> requests() const { return engine_.list(); }
  // LoRA adapters that requests may name. Use it from any thread.
  models::AdapterLibrary& adapters() { return *model_.adapters; }
  const ModelInfo& model_info() const { return model_info_; }

 private:
  std::vector<std::unique_ptr<ChatStream>> run(std::function<Result<Prepared>()> prepare, uint64_t owner, int n,
                                               std::function<void()> notify);
  void admit(Result<Prepared> prepared, const std::vector<std::shared_ptr<Mailbox>>& mailboxes);
  Status submit(Prepared prepared, const std::shared_ptr<Mailbox>& mailbox, std::function<void()> on_event = {});
  template <class T>
  std::unique_ptr<ServiceJob<T>> run_job(PrepareThread& thread, std::function<Result<T>()> work,
                                         std::function<void()> notify);

  ChatModel model_;
  const ModelInfo model_info_;
  engine::Engine engine_;
  std::unique_ptr<Constraints> constraints_;    // of the prepare thread
  std::unique_ptr<ThinkingResolver> thinking_;  // of the prepare thread
  std::unique_ptr<Embedder> embedder_;
  std::unique_ptr<PassageMemory> passages_;  // of the prepare thread
  // Lanes: who has many long texts tokenized, embedded or learned holds up nobody's prompt. They end first, as their
  // jobs use the others.
  std::unique_ptr<PrepareThread> token_lane_, embed_lane_;
  std::unique_ptr<PrepareThread> prepare_;  // of prompts, and of what is of its thread above
  std::unique_ptr<PrepareThread> lessons_;
};

}  // namespace chimere::orchestrator

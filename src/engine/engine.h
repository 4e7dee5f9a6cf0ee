// engine.h  The public interface of the engine: token ids in, events out.
//
// One thread owns the model, the sequences and the schedule. Callers on any thread talk to it through these methods,
// which only post a message to its queue. The engine batches what is running: every step takes one token of each
// decoding request and as much prefill as fits into the batch, prompts taking turns. Owners of requests have equal
// shares of its places and steps (queue_places.h, fair_share.h).
//
//   Engine engine(model, {});
//   auto answer = engine.submit(request);            // Result<Submitted>: refused at once if it cannot run
//   for (Event e = answer->events->wait(); ; ...) {...}
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/prefix_cache.h"
#include "engine/embedding.h"
#include "engine/event.h"
#include "engine/request.h"
#include "engine/stats.h"
#include "models/model.h"

namespace chimere::engine {

struct EngineConfig {
  int max_running = 8;     // sequences that decode together (a few more may be admitted and take turns); at most
                           // LoadOptions::decode_rows, so that a batch has room for prompts
  int max_queued = 64;     // waiting requests of one owner; one more is refused as exhausted
  int context_length = 0;  // of a sequence; 0: what the model was trained for
  int prefill_tokens = 0;  // the longest slice of a prompt in one step, and its grid; 0: what suits the model
  // KV pages and recurrent state of all sequences and of the cache together; at most what the backend has for them
  uint64_t state_bytes = uint64_t{4} << 30;
  CacheConfig cache = {.ram_bytes = uint64_t{2} << 30, .disk = {}};  // at most half of state_bytes
  int filler_tokens = 0;  // snapshots inside a long prompt are at most this far apart; 0: what suits the slices
  std::vector<int32_t> suppressed_ids;                   // never drawn
  speculative::Mode speculate = speculative::Mode::off;  // for requests that do not say
  int draft_max = kDecodeTokens - 1;                     // guesses of an answer in one step; at most this
  std::chrono::seconds idle_sleep{0};                    // Engine::sleep when nothing ran for so long; 0: never
  std::function<void(const std::string&)> log;           // lines for who runs the engine, on its thread; may be empty
  // A small model of the same vocabulary that guesses; null: none. It outlives the engine, which alone uses it.
  models::Model* draft_model = nullptr;
};

struct Submitted {
  RequestId id;
  std::shared_ptr<Channel<Event>> events;
};

struct SubmittedEmbed {
  RequestId id;
  std::shared_ptr<Channel<Result<Vectors>>> result;  // one value
};

// Log-probabilities of given text.
struct Scored {
  std::vector<float> logprobs;  // [tokens - 1]: of tokens[i + 1] after tokens[0..i]
};

class Loop;  // loop.h: the engine thread

class Engine {
 public:
  // Starts the engine thread. The model must outlive the engine, which alone uses it.
  Engine(models::Model& model, EngineConfig config);
  // Cancels running requests, ends each with its terminal event, stops the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Refuses with invalid_argument (ids, parameters, a prompt beyond the context: the message has the numbers) or
  // exhausted (queue full). `notify` is called on the engine thread after each event.
  Result<Submitted> submit(Request request, std::function<void()> notify = {});
  // Several answers to one prompt, one for each `notify`: the first, and forks of it with the next values of
  // SamplingParams::choice, which begin when it has read the prompt. They are as many requests: all of them get a place
  // in the queue or none does, and each ends by itself. REQUIRES: at least one.
  Result<std::vector<Submitted>> submit_choices(Request request, std::vector<std::function<void()>> notify);
  // Whether so many requests of that owner would find places at this moment, or exhausted: to be asked before a prompt
  // is made for nothing.
  Status check_places(uint64_t owner, int n) const;
  // Ends the request within one step; its terminal event is `finished` with reason cancelled. Unknown ids are ignored.
  void cancel(RequestId id);
  void update(RequestId id, Update update);
  // A second request that shares everything computed for `id` so far and goes on with its own sampling; it waits while
  // `id` reads its prompt. When `id` has already ended, the new one ends at once with a failed event (not_found).
  Result<Submitted> fork(RequestId id, SamplingParams sampling, std::function<void()> notify = {});
  // Embeds texts, in batches beside the requests that generate. Refuses like submit(); cancel() ends it with an error.
  Result<SubmittedEmbed> embed(EmbedRequest request, std::function<void()> notify = {});
  // Blocks until the engine has done the work, between two of its steps.
  Result<Scored> score(std::vector<int32_t> tokens);

  // Clears the prefix cache, of an owner or all of it, in memory and on disk. Requests that run now are kept again when
  // they end. `done` is called once on the engine thread with what was freed, unless the engine stops first.
  void clear_cache(std::optional<uint64_t> owner, std::function<void(CacheUse)> done);
  // Sleep: the card's memory is free for other programs, and the model waits in the host's (Executable::sleep). It begins
  // as soon as nothing runs. Whatever needs the model wakes it. `done` is called once on the engine thread with the bytes
  // that were given away, or the reason why not, unless the engine stops first.
  void sleep(std::function<void(Result<uint64_t>)> done);
  void wake(std::function<void(Status)> done);

  // The folder of the prefix cache on disk; empty without one.
  std::string cache_folder() const;

  // These two never wait for a step.
  EngineStats stats() const;
  std::vector<RequestInfo> list() const;  // oldest first
  int context_length() const { return context_length_; }
  int n_vocab() const { return model_.n_vocab(); }
  int d_model() const { return model_.d_model(); }

 private:
  Status check(std::span<const int32_t> tokens) const;
  // Refuses guesses of a source that the engine was not given.
  Status check_source(speculative::Mode mode) const;

  models::Model& model_;
  const EngineConfig config_;
  const int context_length_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace chimere::engine

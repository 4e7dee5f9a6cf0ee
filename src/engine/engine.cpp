#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <future>

#include "base/hash.h"
#include "engine/loop.h"
#include "engine/score.h"

namespace chimere::engine {
namespace {

RequestId next_id() {
  static std::atomic<RequestId> last{0};
  return ++last;
}

// A slice of a prompt must fit into a batch beside everyone who decodes, or it would wait for all of them.
EngineConfig within(EngineConfig config, Executable& executable) {
  const int rows = executable.prefill_rows();
  config.prefill_tokens = config.prefill_tokens > 0 ? std::min(config.prefill_tokens, rows) : rows;
  const int every = std::max(config.filler_tokens > 0 ? config.filler_tokens : 1024, config.prefill_tokens);
  config.filler_tokens = (every + config.prefill_tokens - 1) / config.prefill_tokens * config.prefill_tokens;
  config.state_bytes = std::min(config.state_bytes, executable.memory().free_bytes());
  config.cache.ram_bytes = std::min(config.cache.ram_bytes, config.state_bytes / 2);
  config.draft_max = std::clamp(config.draft_max, 0, kDecodeTokens - 1);
  config.max_running = std::clamp(config.max_running, 1, std::max(1, executable.max_rows() - config.prefill_tokens));
  return config;
}

int context_for(models::Model& model, const EngineConfig& config) {
  const int context = config.context_length > 0 ? config.context_length : model.context_length();
  const int longest = model.executable().program().whole_sequence_rows();
  return longest > 0 ? std::min({context, longest, model.executable().max_rows()}) : context;
}

}  // namespace

Engine::Engine(models::Model& model, EngineConfig config)
    : model_(model),
      config_(within(std::move(config), model.executable())),
      context_length_(context_for(model, config_)),
      loop_(std::make_unique<Loop>(model_, config_)) {}

Engine::~Engine() = default;

Status Engine::check(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return Error{Code::invalid_argument, "the prompt is empty: expected at least 1 token"};
  if (static_cast<int64_t>(tokens.size()) > context_length_) {
    return Error{Code::invalid_argument, "too large: the prompt has " + std::to_string(tokens.size()) +
                                             " tokens, the context holds " + std::to_string(context_length_)};
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= n_vocab()) {
      return Error{Code::invalid_argument, "token " + std::to_string(i) + ": id " + std::to_string(tokens[i]) +
                                               " is outside the vocabulary of " + std::to_string(n_vocab())};
    }
  }
  return Ok{};
}

Status Engine::check_source(speculative::Mode mode) const {
  const char* missing = nullptr;
  if (mode == speculative::Mode::draft && !config_.draft_model)
    missing = "a draft model, and none was given (--draft-model FILE)";
  if (mode == speculative::Mode::dflash && !model_.draft_blocks())
    missing = "a DFlash drafter, and none was given (--drafter FILE)";
  if (mode == speculative::Mode::mtp && model_.draft_blocks()) missing = "an MTP block, whose place a drafter has";
  if (!missing) return Ok{};
  return Error{Code::invalid_argument, "speculation \"" + std::string(name(mode)) + "\" needs " + missing};
}

Result<Submitted> Engine::submit(Request request, std::function<void()> notify) {
  TRY_ASSIGN(std::vector<Submitted> submitted, submit_choices(std::move(request), {std::move(notify)}));
  return Result<Submitted>{std::move(submitted.front())};
}

Result<std::vector<Submitted>> Engine::submit_choices(Request request, std::vector<std::function<void()>> notify) {
  TRY(model_.require_logits());
  TRY(check(request.prompt));
  TRY(request.sampling.validate(n_vocab()));
  TRY(request.thinking.validate(n_vocab()));
  if (request.speculate) TRY(check_source(*request.speculate));
  if (request.max_tokens == 0) return Error{Code::invalid_argument, "max_tokens: expected at least 1, found 0"};
  if (static_cast<int>(request.prompt.size()) >= context_length_) {
    return Error{Code::invalid_argument, "the prompt has " + std::to_string(request.prompt.size()) +
                                             " tokens and leaves no room for an answer: the context holds " +
                                             std::to_string(context_length_)};
  }
  if (request.adapters && request.adapters->uses.empty()) request.adapters = nullptr;
  if (request.adapters) {
    if (!model_.executable().has_adapters()) {
      return Error{Code::unsupported, "adapters: this backend runs the model without them"};
    }
    request.cache_scope = hash_mix(request.cache_scope ^ request.adapters->key());
  }
  const auto n_prompt = static_cast<int32_t>(request.prompt.size());
  TRY(loop_->check_state_bytes(n_prompt, "prompt"));
  TRY_ASSIGN(auto places, loop_->places().take(request.owner, static_cast<int>(notify.size())));
  std::vector<Submitted> submitted;
  for (auto& n : notify) submitted.push_back({next_id(), std::make_shared<Channel<Event>>(std::move(n))});
  const auto shared = std::make_shared<const Request>(std::move(request));
  auto first = std::make_unique<Active>(submitted[0].id, shared, submitted[0].events,
                                        AnswerState(shared, context_length_ - n_prompt));
  first->place = std::move(places[0]);
  first->sampler = SamplerState(shared->prompt);
  first->usage.prompt_tokens = n_prompt;
  if (shared->constraint) first->constraint = shared->constraint->clone();
  if (shared->memory) first->memory = shared->memory->clone();
  first->draft.mode = shared->speculate.value_or(config_.speculate);
  if (shared->drafts) first->draft.own = shared->drafts->clone();
  first->cuts = cut_prompt(n_prompt, shared->snapshot_points, config_.prefill_tokens, config_.filler_tokens);
  first->submitted = std::chrono::steady_clock::now();

  // Nothing here waits for the engine thread: a caller with one I/O thread must not stall for the length of a step.
  loop_->announce(*first);
  auto active = std::make_shared<std::unique_ptr<Active>>(std::move(first));
  // One message, so that the first can not have ended before it is forked.
  loop_->post([active, submitted, places = std::move(places)](Loop& loop) mutable {
    SamplingParams sampling = (*active)->request->sampling;
    loop.admit(std::move(*active));
    for (size_t i = 1; i < submitted.size(); ++i) {
      ++sampling.choice;
      loop.fork(submitted[0].id, sampling, submitted[i].id, submitted[i].events, std::move(places[i]));
    }
  });
  return Result<std::vector<Submitted>>{std::move(submitted)};
}

Status Engine::check_places(uint64_t owner, int n) const { return loop_->places().check(owner, n); }

void Engine::cancel(RequestId id) {
  loop_->post([id](Loop& loop) { loop.cancel(id); });
}

void Engine::update(RequestId id, Update update) {
  loop_->post([id, update = std::move(update)](Loop& loop) { loop.update(id, update); });
}

Result<Submitted> Engine::fork(RequestId id, SamplingParams sampling, std::function<void()> notify) {
  TRY(sampling.validate(n_vocab()));
  Submitted submitted{next_id(), std::make_shared<Channel<Event>>(std::move(notify))};
  TRY_ASSIGN(auto places, loop_->places().take(0, 1));
  loop_->post([id, submitted, sampling = std::move(sampling), place = std::move(places.front())](Loop& loop) mutable {
    loop.fork(id, sampling, submitted.id, submitted.events, std::move(place));
  });
  return submitted;
}

Result<Scored> Engine::score(std::vector<int32_t> tokens) {
  TRY(check(tokens));
  std::promise<Result<std::vector<float>>> done;
  loop_->post([&](Loop& loop) {
    const Status awake = loop.wake();
    done.set_value(awake ? score_tokens(loop.model(), tokens) : Result<std::vector<float>>{awake.error()});
  });
  TRY_ASSIGN(std::vector<float> logprobs, done.get_future().get());
  return Scored{std::move(logprobs)};
}

Result<SubmittedEmbed> Engine::embed(EmbedRequest request, std::function<void()> notify) {
  if (request.texts.empty()) return Error{Code::invalid_argument, "there is no text: expected at least 1"};
  if (request.pooling == Pooling::score && !loop_->model().scores_pairs()) {
    return Error{Code::invalid_argument, "the model has no head that scores pairs of texts"};
  }
  if (request.hop_tokens < 0 || (request.hop_tokens > 0 && request.pooling != Pooling::mean)) {
    return Error{Code::invalid_argument, "windows: expected the mean as pooling and a hop of at least 1 token, found " +
                                             std::to_string(request.hop_tokens)};
  }
  if (!request.second_at.empty() && request.second_at.size() != request.texts.size()) {
    return Error{Code::invalid_argument, "expected as many beginnings of second texts as texts"};
  }
  size_t longest = 0;
  for (size_t i = 0; i < request.texts.size(); ++i) {
    if (Status s = check(request.texts[i]); !s) {
      s.error().message = "text " + std::to_string(i) + ": " + s.error().message;
      return std::move(s.error());
    }
    longest = std::max(longest, request.texts[i].size());
  }
  TRY(loop_->check_state_bytes(static_cast<int32_t>(longest), "text"));
  TRY_ASSIGN(auto places, loop_->embed_places().take(request.owner, 1));
  request.place = std::move(places.front());
  SubmittedEmbed submitted{next_id(), std::make_shared<Channel<Result<Vectors>>>(std::move(notify))};
  auto shared = std::make_shared<EmbedRequest>(std::move(request));
  loop_->post([submitted, shared](Loop& loop) { loop.embed(submitted.id, std::move(*shared), submitted.result); });
  return submitted;
}

void Engine::clear_cache(std::optional<uint64_t> owner, std::function<void(CacheUse)> done) {
  loop_->post([owner, done = std::move(done)](Loop& loop) { loop.clear_cache(owner, done); });
}

void Engine::sleep(std::function<void(Result<uint64_t>)> done) {
  loop_->post([done = std::move(done)](Loop& loop) mutable { loop.sleep(std::move(done)); });
}

void Engine::wake(std::function<void(Status)> done) {
  loop_->post([done = std::move(done)](Loop& loop) { done(loop.wake()); });
}

std::string Engine::cache_folder() const { return loop_->cache_folder(); }

EngineStats Engine::stats() const { return loop_->stats(); }

std::vector<RequestInfo> Engine::list() const { return loop_->list(); }

}  // namespace chimere::engine

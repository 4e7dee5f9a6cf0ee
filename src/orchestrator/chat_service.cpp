// chat_service.cpp  Requests on their way to the engine.
#include "orchestrator/chat_service.h"

#include <algorithm>
#include <utility>

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxPreparing = 64;

engine::EngineConfig config_for(const ChatModel& model, engine::EngineConfig config) {
  config.draft_model = model.draft_model.get();
  const std::vector<int32_t> ids = model.suppressed_ids();
  config.suppressed_ids.insert(config.suppressed_ids.end(), ids.begin(), ids.end());
  return config;
}

}  // namespace

ChatService::ChatService(ChatModel model, engine::EngineConfig config)
    : model_(std::move(model)),
      model_info_(describe_model(model_)),
      engine_(*model_.model, config_for(model_, std::move(config))),
      embedder_(*model_.model, model_.tokenizer, engine_, model_.pooling),
      memory_(model_.tokenizer, model_.memory),
      preparer_(model_, memory_, engine_.context_length()),
      token_lane_(kMaxPreparing),
      prepare_(kMaxPreparing) {
  memory_.passages().add_embedder(embedder_);
  preparer_.embed_with([this](std::vector<std::vector<int32_t>> texts) -> Result<engine::Vectors> {
    engine::EmbedRequest request;
    request.texts = std::move(texts);
    request.pooling = engine::Pooling::last;
    TRY_ASSIGN(engine::SubmittedEmbed submitted, engine_.embed(std::move(request)));
    return submitted.result->wait();
  });
}

std::unique_ptr<ChatStream> ChatService::start(ChatRequest request, std::function<void()> notify) {
  return std::move(start(std::move(request), 1, std::move(notify)).front());
}

std::vector<std::unique_ptr<ChatStream>> ChatService::start(ChatRequest request, int n, std::function<void()> notify) {
  const uint64_t owner = request.owner;
  return run([this, request = std::move(request)] { return preparer_.prepare(request); }, owner, n, std::move(notify));
}

std::unique_ptr<ChatStream> ChatService::complete(CompletionRequest request, std::function<void()> notify) {
  return std::move(complete(std::move(request), 1, std::move(notify)).front());
}

std::vector<std::unique_ptr<ChatStream>> ChatService::complete(CompletionRequest request, int n,
                                                               std::function<void()> notify) {
  const uint64_t owner = request.owner;
  return run([this, request = std::move(request)] { return preparer_.prepare(request); }, owner, n, std::move(notify));
}

std::unique_ptr<TokenJob> ChatService::tokenize(ChatRequest request, std::function<void()> notify) {
  const uint64_t owner = request.owner;
  auto work = [this, request = std::move(request)] { return preparer_.prompt_of(request); };
  return prepare_.run<std::vector<int32_t>>(std::move(work), std::move(notify), owner);
}

std::unique_ptr<ServiceJob<std::string>> ChatService::render(ChatRequest request, std::function<void()> notify) {
  const uint64_t owner = request.owner;
  auto work = [this, request = std::move(request)] { return preparer_.text_of(request); };
  return prepare_.run<std::string>(std::move(work), std::move(notify), owner);
}

std::unique_ptr<TokenJob> ChatService::tokenize(std::string text, bool add_special, std::function<void()> notify,
                                                uint64_t owner) {
  auto work = [this, text = std::move(text), add_special]() -> Result<std::vector<int32_t>> {
    return model_.tokenizer.encode(text, EncodeMode::text, add_special);
  };
  return token_lane_.run<std::vector<int32_t>>(std::move(work), std::move(notify), owner);
}

std::unique_ptr<ServiceJob<Ok>> ChatService::load_adapter(std::string name, std::string path, float scale,
                                                          std::string owner, std::function<void()> notify) {
  auto work = [this, name = std::move(name), path = std::move(path), scale, owner = std::move(owner)] {
    return adapters().load(name, path, scale, owner);
  };
  return prepare_.run<Ok>(std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<CacheUse>> ChatService::clear_cache(std::optional<uint64_t> owner,
                                                               std::function<void()> notify) {
  auto result = std::make_shared<Channel<Result<CacheUse>>>(std::move(notify));
  engine_.clear_cache(owner, [result](const CacheUse& cleared) { result->put(cleared); });
  return std::make_unique<ServiceJob<CacheUse>>(std::move(result));
}

std::unique_ptr<ServiceJob<uint64_t>> ChatService::sleep(std::function<void()> notify) {
  auto result = std::make_shared<Channel<Result<uint64_t>>>(std::move(notify));
  engine_.sleep([result](Result<uint64_t> given) { result->put(std::move(given)); });
  return std::make_unique<ServiceJob<uint64_t>>(std::move(result));
}

std::unique_ptr<ServiceJob<Ok>> ChatService::wake(std::function<void()> notify) {
  auto result = std::make_shared<Channel<Result<Ok>>>(std::move(notify));
  engine_.wake([result](Status awake) { result->put(std::move(awake)); });
  return std::make_unique<ServiceJob<Ok>>(std::move(result));
}

std::vector<std::unique_ptr<ChatStream>> ChatService::run(std::function<Result<Prepared>()> prepare, uint64_t owner,
                                                          int n, std::function<void()> notify) {
  std::vector<std::shared_ptr<Admission>> admissions;
  std::vector<std::unique_ptr<ChatStream>> streams;
  for (int i = 0; i < n; ++i) {
    admissions.push_back(std::make_shared<Admission>(notify));
    streams.push_back(std::make_unique<ChatStream>(engine_, admissions.back()));
  }
  auto job = [this, admissions, prepare = std::move(prepare)](bool go_on) {
    const bool is_wanted =
        std::any_of(admissions.begin(), admissions.end(), [](const auto& a) { return !a->is_cancelled(); });
    admit(go_on && is_wanted ? guarded(prepare) : Error{Code::cancelled, "the service is stopping"}, admissions);
  };
  // Who comes again and again while the queue is full should not keep the thread busy that makes others' prompts.
  Status room = engine_.check_places(owner, n);
  if (room && !prepare_.post(std::move(job), owner)) room = prepare_.full();
  if (!room) {
    for (auto& admission : admissions) admission->put(Refused{room.error()});
  }
  return streams;
}

void ChatService::admit(Result<Prepared> prepared, const std::vector<std::shared_ptr<Admission>>& admissions) {
  const auto refuse = [&](const Error& error, int32_t n_too_many = 0) {
    for (auto& admission : admissions) admission->put(Refused{error, n_too_many});
  };
  if (!prepared) return refuse(prepared.error());
  const auto n_prompt = static_cast<int32_t>(prepared->request.prompt.size());
  if (n_prompt >= context_length()) {
    return refuse({Code::invalid_argument, "the prompt has " + std::to_string(n_prompt) +
                                               " tokens and leaves no room for an answer: the context holds " +
                                               std::to_string(context_length())},
                  n_prompt);
  }
  int32_t limit = prepared->request.max_answer_tokens;
  if (limit >= 0) limit = std::min(limit, context_length() - n_prompt);
  std::vector<std::function<void()>> notify;
  for (auto& admission : admissions) notify.push_back([admission] { admission->ring(); });
  auto submitted = engine_.submit_choices(std::move(prepared->request), std::move(notify));
  if (!submitted) return refuse(submitted.error());
  for (size_t i = 0; i < admissions.size(); ++i) {
    const engine::RequestId id = (*submitted)[i].id;
    Admitted admitted{std::move((*submitted)[i]), prepared->text,        n_prompt, prepared->passages, limit,
                      prepared->names_loops,      prepared->shown_prompt};
    if (!admissions[i]->put(std::move(admitted))) engine_.cancel(id);
  }
}

}  // namespace chimere::orchestrator

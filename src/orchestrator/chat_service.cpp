// chat_service.cpp  Requests on their way to the engine.
#include "orchestrator/chat_service.h"

#include <algorithm>
#include <utility>

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxPreparing = 64;

engine::EngineConfig with_suppressed(engine::EngineConfig config, const ChatModel& model) {
  const std::vector<int32_t> ids = model.suppressed_ids();
  config.suppressed_ids.insert(config.suppressed_ids.end(), ids.begin(), ids.end());
  return config;
}

}  // namespace

ChatService::ChatService(ChatModel model, engine::EngineConfig config)
    : model_(std::move(model)),
      model_info_(describe_model(model_)),
      engine_(*model_.model, with_suppressed(std::move(config), model_)),
      embedder_(*model_.model, model_.tokenizer, engine_, model_.pooling),
      memory_(model_.tokenizer, model_.memory),
      preparer_(model_, memory_, engine_.context_length()),
      token_lane_(kMaxPreparing),
      prepare_(kMaxPreparing) {
  memory_.passages().add_embedder(embedder_);
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
  auto box = std::make_shared<ServiceJob<CacheUse>::Box>(std::move(notify));
  engine_.clear_cache(owner, [box](const CacheUse& cleared) { box->put(cleared); });
  return std::make_unique<ServiceJob<CacheUse>>(std::move(box));
}

std::vector<std::unique_ptr<ChatStream>> ChatService::run(std::function<Result<Prepared>()> prepare, uint64_t owner,
                                                          int n, std::function<void()> notify) {
  std::vector<std::shared_ptr<Mailbox>> mailboxes;
  std::vector<std::unique_ptr<ChatStream>> streams;
  for (int i = 0; i < n; ++i) {
    mailboxes.push_back(std::make_shared<Mailbox>(notify));
    streams.push_back(std::make_unique<ChatStream>(engine_, mailboxes.back()));
  }
  auto job = [this, mailboxes, prepare = std::move(prepare)](bool go_on) {
    if (!go_on || mailboxes[0]->is_cancelled()) {
      for (auto& mailbox : mailboxes) mailbox->put(Error{Code::cancelled, "the service is stopping"});
      return;
    }
    admit(guarded(prepare), mailboxes);
  };
  if (!prepare_.post(std::move(job), owner)) {
    for (auto& mailbox : mailboxes) mailbox->put(prepare_.full());
  }
  return streams;
}

void ChatService::admit(Result<Prepared> prepared, const std::vector<std::shared_ptr<Mailbox>>& mailboxes) {
  if (!prepared) {
    for (auto& mailbox : mailboxes) mailbox->put(prepared.error());
    return;
  }
  const auto n_prompt = static_cast<int>(prepared->request.prompt.size());
  if (n_prompt >= context_length()) {
    for (auto& mailbox : mailboxes) mailbox->put_too_long(n_prompt, context_length());
    return;
  }
  // Several answers to one prompt are as many requests: all of them have their place now, or none has.
  auto places = engine_.reserve(prepared->request.owner, static_cast<int>(mailboxes.size()));
  if (!places) {
    for (auto& mailbox : mailboxes) mailbox->put(places.error());
    return;
  }
  prepared->request.place = std::move((*places)[0]);
  // On the first event of the first answer, which comes when its prompt is read, the engine thread hands in the others.
  struct Others {
    std::vector<Prepared> prepared;
    std::vector<std::shared_ptr<Mailbox>> mailboxes;
  };
  auto others = std::make_shared<Others>();
  for (size_t i = 1; i < mailboxes.size(); ++i) {
    others->prepared.push_back(*prepared);
    others->prepared.back().request.sampling.choice = static_cast<uint32_t>(i);
    others->prepared.back().request.place = std::move((*places)[i]);
    others->mailboxes.push_back(mailboxes[i]);
  }
  std::function<void()> on_event;
  if (mailboxes.size() > 1) {
    on_event = [this, others] {
      std::vector<Prepared> waiting = std::exchange(others->prepared, {});
      // What is refused ends as a failed stream.
      for (size_t i = 0; i < waiting.size(); ++i) (void)submit(std::move(waiting[i]), others->mailboxes[i]);
    };
  }
  const Status submitted = submit(std::move(*prepared), mailboxes[0], on_event);
  if (submitted) return;
  for (size_t i = 1; i < mailboxes.size(); ++i) mailboxes[i]->put(submitted.error());
}

Status ChatService::submit(Prepared prepared, const std::shared_ptr<Mailbox>& mailbox, std::function<void()> on_event) {
  const Error cancelled{Code::cancelled, "cancelled"};
  if (mailbox->is_cancelled()) {
    mailbox->put(cancelled);
    return cancelled;
  }
  const auto n_prompt = static_cast<int32_t>(prepared.request.prompt.size());
  int32_t limit = prepared.request.max_answer_tokens;
  if (limit >= 0) limit = std::min(limit, context_length() - n_prompt);
  auto notify = [mailbox, on_event = std::move(on_event)] {
    mailbox->ring();
    if (on_event) on_event();
  };
  auto submitted = engine_.submit(std::move(prepared.request), std::move(notify));
  if (!submitted) {
    mailbox->put(submitted.error());
    return submitted.error();
  }
  const engine::RequestId id = submitted->id;
  Admitted admitted{std::move(*submitted), std::move(prepared.text), n_prompt, std::move(prepared.passages), limit,
                    prepared.names_loops};
  if (!mailbox->put(std::move(admitted))) engine_.cancel(id);
  return Ok{};
}

}  // namespace chimere::orchestrator

// chat_service.cpp  Requests on their way to the engine.
#include "orchestrator/chat_service.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "chat/bare_calls.h"
#include "chat/markers.h"
#include "orchestrator/constraints.h"
#include "orchestrator/passage_memory.h"
#include "orchestrator/prepare_thread.h"
#include "orchestrator/recall.h"
#include "orchestrator/snapshot_points.h"
#include "orchestrator/tools_as_text.h"

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxPreparing = 64;

engine::EngineConfig with_suppressed(engine::EngineConfig config, const ChatModel& model) {
  const std::vector<int32_t> ids = model.suppressed_ids();
  config.suppressed_ids.insert(config.suppressed_ids.end(), ids.begin(), ids.end());
  return config;
}

// The template's own words may be control tokens; what came in from outside never is.
std::vector<int32_t> encode(const Tokenizer& tokenizer, const chat::Rendered& rendered) {
  std::vector<TextSpan> spans;
  for (const chat::Span& span : rendered.spans) {
    spans.push_back({std::string_view(rendered.text).substr(span.begin, span.end - span.begin),
                     span.is_input ? EncodeMode::plain : EncodeMode::special});
  }
  std::vector<int32_t> ids = tokenizer.encode_spans(spans, false);
  // A template usually writes the begin token itself. An end token has no place before an answer.
  const int32_t bos = tokenizer.special_ids().bos;
  if (tokenizer.adds_bos() && bos >= 0 && (ids.empty() || ids.front() != bos)) ids.insert(ids.begin(), bos);
  return ids;
}

// The last words of the template itself: they say whether the answer starts inside a thought.
std::string_view last_words(const chat::Rendered& rendered) {
  if (rendered.spans.empty() || rendered.spans.back().is_input) return {};
  return std::string_view(rendered.text).substr(rendered.spans.back().begin);
}

// Whether the template has written an empty thought: the model is not to think.
bool ends_after_thought(std::string_view words, const chat::ThoughtMarkers& markers) {
  const size_t end = words.find_last_not_of(" \n");
  return end != std::string_view::npos && words.substr(0, end + 1).ends_with(markers.close);
}

// No thought can begin or end any more: a small model may write such a word by mistake.
void ban_thoughts(const Tokenizer& tokenizer, const chat::ThoughtMarkers& markers, SamplingParams& sampling) {
  for (const std::string_view word : {markers.open, markers.close}) {
    if (const int32_t id = tokenizer.find_token(word); id >= 0) {
      sampling.logit_bias.push_back({id, -std::numeric_limits<float>::infinity()});
    }
  }
}

// Tokens of a thought when the request does not count them itself. An answer must fit behind it, so it has half of the
// context at most.
int32_t default_budget(const ChatModel& model, const ChatRequest& request, int32_t room) {
  int32_t budget = model.thinking_budget >= 0 ? model.thinking_budget : std::max(room / 2, 0);
  if (request.thinking_limit >= 0) budget = std::min(request.thinking_limit, std::max(room / 2, 0));
  return budget;
}

// A thought the model does not end is ended for it. Vocabularies without one token for the end of a thought are left
// alone.
engine::Thought thought_of(const Tokenizer& tokenizer, const chat::ThoughtMarkers& markers, int32_t budget,
                           bool allows_calls) {
  engine::Thought thought;
  const int32_t end = tokenizer.find_token(markers.close);
  if (end < 0) return thought;
  thought.open = true;
  thought.opener = tokenizer.find_token(markers.open);
  thought.end_ids = {end};
  for (const std::string_view call : {chat::kToolCallOpen, chat::kToolCalls}) {
    if (const int32_t id = tokenizer.find_token(call); id >= 0 && allows_calls) thought.end_ids.push_back(id);
  }
  thought.close = tokenizer.encode("\n" + std::string(markers.close) + "\n\n", EncodeMode::special, false);
  thought.budget = budget;
  return thought;
}

// What the template writes before an answer. It is the same whatever the conversation, so the shortest one will do.
std::string generation_prompt(const chat::ChatTemplate& chat_template) {
  chat::ChatInput input;
  input.messages.emplace_back();
  input.messages.back().role = "user";
  input.messages.back().content = "";
  auto prompt = chat_template.generation_prompt(input);
  return prompt ? std::move(*prompt) : std::string();
}

// What of a request is the same for messages and for text.
Result<Prepared> finished(const ChatModel& model, ThinkingResolver& thinking, const GenerateOptions& request,
                          engine::Request generate, std::optional<chat::OutputParser> parser,
                          PassageMemory::Found passages) {
  TRY_ASSIGN(generate.memory, model.memory_for(request.memory, std::move(passages.tables)));
  TRY_ASSIGN(generate.adapters, model.adapters_for(request.adapters));
  const ThinkingOptions steered = request.thinking.over(model.thinking);
  generate.thinking = thinking.resolve(steered);
  AnswerText text(model.tokenizer, std::move(parser),
                  {request.stop, request.logprobs || request.token_stats, thinking.max_entropy()});
  return Result<Prepared>{
      Prepared{std::move(generate), std::move(text), std::move(passages.used), steered.asks_for_loop_guard()}};
}

void bind(const Constraints::Made& form, const GenerateOptions& request, engine::Request& generate) {
  generate.constraint = form.constraint;
  generate.completes = form.completes;
  if (form.is_bound && request.max_tokens < 0) generate.max_answer_tokens = Constraints::kMaxAnswerTokens;
}

// `passages`: null when the answer is not wanted.
Result<Prepared> prepare_chat(const ChatModel& model, Constraints& constraints, ThinkingResolver& thinking,
                              const PassageMemory* passages, const ChatRequest& request, int context_length) {
  const chat::ChatTemplate* chat_template = model.template_for(request);
  if (!chat_template) {
    return Error{Code::unsupported,
                 "messages: this model has no chat template, so it continues text and answers no messages: use "
                 "/v1/completions, or start the server with --chat-template FILE"};
  }
  chat::OutputOptions output;
  output.format = chat_template->tool_format();
  output.is_harmony = chat_template->is_harmony();
  output.thought = chat_template->thought_markers();
  if (request.tool_choice != ToolChoice::none) output.tools = request.tools;
  PassageMemory::Found found;
  if (passages) {
    TRY_ASSIGN(found, passages->find(request.memory, question_of(request.messages), request.deadline));
  }
  chat::ChatInput input;
  input.messages = request.messages;
  for (UsedPassage& note : recall(model, request.memory, found.used, context_length, input.messages)) {
    found.used.push_back(std::move(note));
  }
  input.tools = request.tools;
  if (!request.tools.empty() && !chat_template->supports_tools()) {
    input.messages = tools_as_text(std::move(input.messages), request.tools);
    input.tools.clear();
    output.format = chat::ToolFormat::hermes;
  }
  // An answer that has begun has no thought before it.
  input.enable_thinking = request.goes_on ? false : request.enable_thinking;
  input.add_generation_prompt = request.add_generation_prompt;
  input.extra_kwargs_json = request.template_kwargs;
  auto rendered = request.goes_on ? chat_template->render_open(input) : chat_template->render(input);
  // Whatever stopped the template, it was this conversation that it could not render.
  if (!rendered) return Error{Code::invalid_argument, "chat template: " + rendered.error().message};
  output.starts_in_content = request.goes_on;
  output.starts_in_reasoning = chat::ends_inside_reasoning(last_words(*rendered), output.thought);
  engine::Request generate = generation_request(request, model.tokenizer);
  generate.prompt = encode(model.tokenizer, *rendered);
  Constraints::Lead lead;
  // The engine leaves a thought alone whose end is one token; others are part of the text it constrains.
  const bool has_end_token = model.tokenizer.find_token(output.thought.close) >= 0;
  lead.blank_lines = output.starts_in_reasoning;
  if (output.starts_in_reasoning && !has_end_token) lead.thought_close = output.thought.close;
  TRY_ASSIGN(const Constraints::Made form, constraints.of_chat(request, output.format, lead));
  bind(form, request, generate);
  generate.snapshot_points = snapshot_points(model.tokenizer, generation_prompt(*chat_template), generate.prompt);
  const bool is_silent = input.enable_thinking == false || ends_after_thought(last_words(*rendered), output.thought);
  if (is_silent && !output.starts_in_reasoning) {
    ban_thoughts(model.tokenizer, output.thought, generate.sampling);
  } else {
    const int32_t room = context_length - static_cast<int32_t>(generate.prompt.size());
    const int32_t asked = request.thinking_budget;
    const int32_t budget = asked >= 0 ? asked : default_budget(model, request, room);
    generate.thought = thought_of(model.tokenizer, output.thought, budget, form.allows_calls);
    generate.thought.open = generate.thought.open && output.starts_in_reasoning;
  }
  return finished(model, thinking, request, std::move(generate), chat::OutputParser(output), std::move(found));
}

Result<Prepared> prepare_completion(const ChatModel& model, Constraints& constraints, ThinkingResolver& thinking,
                                    const PassageMemory& passages, const CompletionRequest& request) {
  engine::Request generate = generation_request(request, model.tokenizer);
  generate.prompt =
      request.prompt_ids.empty() ? model.tokenizer.encode(request.prompt, EncodeMode::text, true) : request.prompt_ids;
  TRY_ASSIGN(const Constraints::Made form, constraints.of_completion(request));
  bind(form, request, generate);
  // For the same text once more: several answers, or another try.
  if (generate.prompt.size() > 1) generate.snapshot_points = {static_cast<int32_t>(generate.prompt.size()) - 1};
  const std::string query = request.prompt_ids.empty() || request.memory.passages.empty()
                                ? request.prompt
                                : model.tokenizer.decode(request.prompt_ids, false);
  TRY_ASSIGN(PassageMemory::Found found, passages.find(request.memory, query, request.deadline));
  return finished(model, thinking, request, std::move(generate), std::nullopt, std::move(found));
}

Error too_many_prepared() {
  return {Code::exhausted, "too many requests wait to be prepared: " + std::to_string(kMaxPreparing)};
}

// The one place where what libraries throw while a request is prepared becomes its error.
template <class T>
Result<T> guarded(const std::function<Result<T>()>& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    return Error{Code::internal, std::string("preparing the prompt: ") + e.what()};
  }
}

template <class T>
std::unique_ptr<ServiceJob<T>> run_on(PrepareThread& thread, std::function<Result<T>()> work,
                                      std::function<void()> notify, uint64_t owner) {
  auto box = std::make_shared<typename ServiceJob<T>::Box>(std::move(notify));
  auto job = [box, work = std::move(work)](bool go_on) {
    if (!go_on) return box->put(Error{Code::cancelled, "the service is stopping"});
    box->put(guarded(work));
  };
  if (!thread.post(std::move(job), owner)) box->put(too_many_prepared());
  return std::make_unique<ServiceJob<T>>(std::move(box));
}

}  // namespace

ChatService::ChatService(ChatModel model, engine::EngineConfig config)
    : model_(std::move(model)),
      model_info_(describe_model(model_)),
      engine_(*model_.model, with_suppressed(std::move(config), model_)),
      constraints_(std::make_unique<Constraints>(model_.tokenizer, model_.model->n_vocab())),
      thinking_(std::make_unique<ThinkingResolver>(
          model_.tokenizer, model_.model->n_vocab() - static_cast<int32_t>(model_.suppressed_ids().size()))),
      token_lane_(std::make_unique<PrepareThread>(kMaxPreparing)),
      embed_lane_(std::make_unique<PrepareThread>(kMaxPreparing)),
      prepare_(std::make_unique<PrepareThread>(kMaxPreparing)),
      lessons_(std::make_unique<PrepareThread>(kMaxPreparing)) {
  embedder_ = std::make_unique<Embedder>(*model_.model, model_.tokenizer, engine_, *embed_lane_, model_.pooling);
  passages_ = std::make_unique<PassageMemory>(model_.tokenizer, model_.passages);
  passages_->add_embedder(*embedder_);
}

void ChatService::add_embedder(Embedder& embedder) { passages_->add_embedder(embedder); }

ChatService::~ChatService() = default;

std::unique_ptr<ChatStream> ChatService::start(ChatRequest request, std::function<void()> notify) {
  return std::move(start(std::move(request), 1, std::move(notify)).front());
}

std::vector<std::unique_ptr<ChatStream>> ChatService::start(ChatRequest request, int n, std::function<void()> notify) {
  const uint64_t owner = request.owner;
  return run(
      [this, request = std::move(request)] {
        return prepare_chat(model_, *constraints_, *thinking_, passages_.get(), request, context_length());
      },
      owner, n, std::move(notify));
}

std::unique_ptr<ChatStream> ChatService::complete(CompletionRequest request, std::function<void()> notify) {
  return std::move(complete(std::move(request), 1, std::move(notify)).front());
}

std::vector<std::unique_ptr<ChatStream>> ChatService::complete(CompletionRequest request, int n,
                                                               std::function<void()> notify) {
  const uint64_t owner = request.owner;
  return run(
      [this, request = std::move(request)] {
        return prepare_completion(model_, *constraints_, *thinking_, *passages_, request);
      },
      owner, n, std::move(notify));
}

std::unique_ptr<TokenJob> ChatService::tokenize(ChatRequest request, std::function<void()> notify) {
  const uint64_t owner = request.owner;
  auto work = [this, request = std::move(request)]() -> Result<std::vector<int32_t>> {
    TRY_ASSIGN(Prepared prepared, prepare_chat(model_, *constraints_, *thinking_, nullptr, request, context_length()));
    return Result<std::vector<int32_t>>{std::move(prepared.request.prompt)};
  };
  return run_on<std::vector<int32_t>>(*prepare_, std::move(work), std::move(notify), owner);
}

std::unique_ptr<TokenJob> ChatService::tokenize(std::string text, bool add_special, std::function<void()> notify,
                                                uint64_t owner) {
  auto work = [this, text = std::move(text), add_special]() -> Result<std::vector<int32_t>> {
    return model_.tokenizer.encode(text, EncodeMode::text, add_special);
  };
  return run_on<std::vector<int32_t>>(*token_lane_, std::move(work), std::move(notify), owner);
}

std::unique_ptr<TokenJob> ChatService::load_adapter(std::string name, std::string path, float scale, std::string owner,
                                                    std::function<void()> notify) {
  auto work = [this, name = std::move(name), path = std::move(path), scale,
               owner = std::move(owner)]() -> Result<std::vector<int32_t>> {
    TRY(adapters().load(name, path, scale, owner));
    return std::vector<int32_t>{};
  };
  return run_job<std::vector<int32_t>>(*prepare_, std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<CacheUse>> ChatService::clear_cache(std::optional<uint64_t> owner,
                                                               std::function<void()> notify) {
  auto box = std::make_shared<ServiceJob<CacheUse>::Box>(std::move(notify));
  engine_.clear_cache(owner, [box](const CacheUse& cleared) { box->put(cleared); });
  return std::make_unique<ServiceJob<CacheUse>>(std::move(box));
}

template <class T>
std::unique_ptr<ServiceJob<T>> ChatService::run_job(PrepareThread& thread, std::function<Result<T>()> work,
                                                    std::function<void()> notify) {
  return run_on<T>(thread, std::move(work), std::move(notify), 0);
}

template std::unique_ptr<ServiceJob<Learned>> ChatService::run_job(PrepareThread&, std::function<Result<Learned>()>,
                                                                   std::function<void()>);
template std::unique_ptr<ServiceJob<MemoryList>> ChatService::run_job(PrepareThread&,
                                                                      std::function<Result<MemoryList>()>,
                                                                      std::function<void()>);
template std::unique_ptr<ServiceJob<Forgotten>> ChatService::run_job(PrepareThread&, std::function<Result<Forgotten>()>,
                                                                     std::function<void()>);
template std::unique_ptr<ServiceJob<std::vector<retrieval::Note>>> ChatService::run_job(
    PrepareThread&, std::function<Result<std::vector<retrieval::Note>>()>, std::function<void()>);

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
  if (!prepare_->post(std::move(job), owner)) {
    for (auto& mailbox : mailboxes) mailbox->put(too_many_prepared());
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

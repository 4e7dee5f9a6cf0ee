// chat_service.cpp  Requests on their way to the engine.
#include "orchestrator/chat_service.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "chat/markers.h"
#include "orchestrator/prepare_thread.h"
#include "orchestrator/snapshot_points.h"

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

// The last words of the template itself: they say whether the answer starts inside a thinking block.
bool starts_in_reasoning(const chat::Rendered& rendered) {
  if (rendered.spans.empty() || rendered.spans.back().is_input) return false;
  return chat::ends_inside_reasoning(std::string_view(rendered.text).substr(rendered.spans.back().begin));
}

// Whether the template has written an empty thought: the model is not to think.
bool starts_after_thought(const chat::Rendered& rendered) {
  if (rendered.spans.empty() || rendered.spans.back().is_input) return false;
  const std::string_view words = std::string_view(rendered.text).substr(rendered.spans.back().begin);
  const size_t end = words.find_last_not_of(" \n");
  return end != std::string_view::npos && words.substr(0, end + 1).ends_with(chat::kThinkClose);
}

// No thought can begin or end any more: a small model may write such a word by mistake.
void ban_thoughts(const Tokenizer& tokenizer, SamplingParams& sampling) {
  for (const std::string_view word : {chat::kThinkOpen, chat::kThinkClose}) {
    if (const int32_t id = tokenizer.find_token(word); id >= 0) {
      sampling.logit_bias.push_back({id, -std::numeric_limits<float>::infinity()});
    }
  }
}

// A thought the model does not end is ended for it, at the latest when it has taken half of the context: an answer must
// fit behind it. Vocabularies without one token for the end of a thought are left alone.
engine::Thought thought_of(const Tokenizer& tokenizer, int32_t asked_budget, int32_t room) {
  engine::Thought thought;
  const int32_t end = tokenizer.find_token(chat::kThinkClose);
  if (end < 0) return thought;
  thought.open = true;
  thought.end_ids = {end};
  if (const int32_t call = tokenizer.find_token(chat::kToolCallOpen); call >= 0) thought.end_ids.push_back(call);
  thought.close = tokenizer.encode("\n" + std::string(chat::kThinkClose) + "\n\n", EncodeMode::special, false);
  thought.budget = asked_budget >= 0 ? asked_budget : std::max(room / 2, 0);
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

Result<Prepared> prepare_chat(const ChatModel& model, const ChatRequest& request, int context_length) {
  const chat::ChatTemplate& chat_template = model.template_for(request);
  if (!request.tools.empty() && !chat_template.supports_tools()) {
    return Error{Code::unsupported, "tools: the chat template of this model knows no tools"};
  }
  chat::ChatInput input;
  input.messages = request.messages;
  input.tools = request.tools;
  input.enable_thinking = request.enable_thinking;
  input.extra_kwargs_json = request.template_kwargs;
  auto rendered = chat_template.render(input);
  // Whatever stopped the template, it was this conversation that it could not render.
  if (!rendered) return Error{Code::invalid_argument, "chat template: " + rendered.error().message};
  chat::OutputOptions output;
  output.starts_in_reasoning = starts_in_reasoning(*rendered);
  output.tools = request.tools;
  engine::Request generate = generation_request(request, model.tokenizer);
  generate.prompt = encode(model.tokenizer, *rendered);
  generate.snapshot_points = snapshot_points(model.tokenizer, generation_prompt(chat_template), generate.prompt);
  if (output.starts_in_reasoning) {
    const int32_t room = context_length - static_cast<int32_t>(generate.prompt.size());
    const int32_t asked = request.thinking_budget >= 0 ? request.thinking_budget : model.thinking_budget;
    generate.thought = thought_of(model.tokenizer, asked, room);
  } else if (starts_after_thought(*rendered)) {
    ban_thoughts(model.tokenizer, generate.sampling);
  }
  AnswerText text(model.tokenizer, chat::OutputParser(output), {request.stop, request.logprobs});
  return Result<Prepared>{Prepared{std::move(generate), std::move(text)}};
}

Result<Prepared> prepare_completion(const ChatModel& model, const CompletionRequest& request) {
  engine::Request generate = generation_request(request, model.tokenizer);
  generate.prompt = model.tokenizer.encode(request.prompt, EncodeMode::text, true);
  // For the same text once more: several answers, or another try.
  if (generate.prompt.size() > 1) generate.snapshot_points = {static_cast<int32_t>(generate.prompt.size()) - 1};
  AnswerText text(model.tokenizer, std::nullopt, {request.stop, request.logprobs});
  return Result<Prepared>{Prepared{std::move(generate), std::move(text)}};
}

// The one place where what libraries throw while a request is prepared becomes its error.
Result<Prepared> guarded(const std::function<Result<Prepared>()>& prepare) {
  try {
    return prepare();
  } catch (const std::exception& e) {
    return Error{Code::internal, std::string("preparing the prompt: ") + e.what()};
  }
}

}  // namespace

ChatService::ChatService(ChatModel model, engine::EngineConfig config)
    : model_(std::move(model)),
      engine_(*model_.model, with_suppressed(std::move(config), model_)),
      prepare_(std::make_unique<PrepareThread>(kMaxPreparing)) {}

ChatService::~ChatService() = default;

std::unique_ptr<ChatStream> ChatService::start(ChatRequest request, std::function<void()> notify) {
  return run([this, request = std::move(request)] { return prepare_chat(model_, request, context_length()); },
             std::move(notify));
}

std::unique_ptr<ChatStream> ChatService::complete(CompletionRequest request, std::function<void()> notify) {
  return run([this, request = std::move(request)] { return prepare_completion(model_, request); }, std::move(notify));
}

std::unique_ptr<ChatStream> ChatService::run(std::function<Result<Prepared>()> prepare, std::function<void()> notify) {
  auto mailbox = std::make_shared<Mailbox>(std::move(notify));
  auto admit = [this, mailbox, prepare = std::move(prepare)]() -> Result<Admitted> {
    TRY_ASSIGN(Prepared prepared, guarded(prepare));
    if (mailbox->is_cancelled()) return Error{Code::cancelled, "cancelled"};
    TRY_ASSIGN(engine::Submitted submitted,
               engine_.submit(std::move(prepared.request), [mailbox] { mailbox->ring(); }));
    return Result<Admitted>{Admitted{std::move(submitted), std::move(prepared.text)}};
  };
  const bool posted = prepare_->post([this, mailbox, admit = std::move(admit)](bool go_on) {
    if (!go_on || mailbox->is_cancelled()) {
      mailbox->put(Error{Code::cancelled, "the service is stopping"});
      return;
    }
    Result<Admitted> result = admit();
    const engine::RequestId id = result ? result->submitted.id : 0;
    if (!mailbox->put(std::move(result)) && id != 0) engine_.cancel(id);
  });
  if (!posted) {
    mailbox->put(Error{Code::exhausted, "too many requests wait to be prepared: " + std::to_string(kMaxPreparing)});
  }
  return std::make_unique<ChatStream>(engine_, std::move(mailbox));
}

}  // namespace chimere::orchestrator

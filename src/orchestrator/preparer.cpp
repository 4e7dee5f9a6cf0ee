// preparer.cpp  Requests on their way to token ids.
#include "orchestrator/preparer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "chat/markers.h"
#include "orchestrator/recall.h"
#include "orchestrator/snapshot_points.h"
#include "orchestrator/tools_as_text.h"

namespace chimere::orchestrator {
namespace {

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
std::string generation_prompt(const chat::ChatTemplate& chat_template, chat::RenderAllowance& allowance) {
  chat::ChatInput input;
  input.messages.emplace_back();
  input.messages.back().role = "user";
  input.messages.back().content = "";
  auto prompt = chat_template.generation_prompt(input, allowance);
  return prompt ? std::move(*prompt) : std::string();
}

// Whether the answer broke off within its thought, so that it is the thought that goes on.
bool goes_on_thinking(const ChatRequest& request) {
  if (!request.goes_on || request.messages.empty()) return false;
  const chat::Message& last = request.messages.back();
  return last.reasoning_content && chat::text_of(last).find_first_not_of(" \t\r\n") == std::string::npos;
}

// The conversation up to a thought that has begun behind it. A template that leaves it to the model whether it thinks has
// the thought opened for it.
Result<chat::Rendered> render_thought(const chat::ChatTemplate& chat_template, chat::ChatInput input,
                                      chat::RenderAllowance& allowance) {
  const std::string thought = *input.messages.back().reasoning_content;
  input.messages.pop_back();
  input.add_generation_prompt = true;
  TRY_ASSIGN(chat::Rendered rendered, chat_template.render(input, allowance));
  const auto append = [&](std::string_view text, bool is_input) {
    const size_t begin = rendered.text.size();
    rendered.text += text;
    rendered.spans.push_back({begin, rendered.text.size(), is_input});
  };
  const chat::ThoughtMarkers& markers = chat_template.thought_markers();
  const bool is_open = chat::ends_inside_reasoning(last_words(rendered), markers);
  if (!is_open) append(std::string(markers.open) + "\n", false);
  append(thought, true);
  return Result<chat::Rendered>{std::move(rendered)};
}

Result<chat::Rendered> rendered_for(const ChatRequest& request, const chat::ChatTemplate& chat_template,
                                    const chat::ChatInput& input, chat::RenderAllowance& allowance) {
  if (!request.goes_on) return chat_template.render(input, allowance);
  return goes_on_thinking(request) ? render_thought(chat_template, input, allowance)
                                   : chat_template.render_open(input, allowance);
}

// A thought loses the blanks at its beginning. Where it has begun, a letter of it is read before, so that those that
// come now stay.
chat::OutputParser parser_for(const chat::OutputOptions& output, bool in_thought) {
  chat::OutputParser parser(output);
  std::vector<chat::OutputEvent> begun;
  if (in_thought) parser.feed("x", begun);
  return parser;
}

// An answer that has begun, or has a form, is left as it is.
bool takes_learned(const ChatRequest& request) { return !request.goes_on && request.form.is_free(); }

engine::Closing closing_of(const Tokenizer& tokenizer, const std::string& text, bool may_call) {
  engine::Closing closing;
  const size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string::npos) return closing;
  if (may_call) {
    for (const std::string_view call : {chat::kToolCallOpen, chat::kToolCalls}) {
      if (const int32_t id = tokenizer.find_token(call); id >= 0) closing.unless.push_back(id);
    }
    // Where a call can not be told from a text, nothing is put behind either.
    if (closing.unless.empty()) return closing;
  }
  closing.ids = tokenizer.encode(text, EncodeMode::plain, false);
  // What its tokens have in common, whatever stands before it.
  closing.tail = closing.ids;
  for (const char* before : {"", " ", "\n"}) {
    const std::vector<int32_t> other = tokenizer.encode(before + text.substr(begin), EncodeMode::plain, false);
    const auto differs = std::mismatch(closing.tail.rbegin(), closing.tail.rend(), other.rbegin(), other.rend());
    closing.tail.erase(closing.tail.begin(), differs.first.base());
  }
  if (closing.tail.empty()) closing.ids.clear();
  return closing;
}

void bind(const Constraints::Made& form, const GenerateOptions& request, engine::Request& generate) {
  generate.constraint = form.constraint;
  generate.completes = form.completes;
  if (form.is_bound && request.max_tokens < 0) generate.max_answer_tokens = Constraints::kMaxAnswerTokens;
}

}  // namespace

Preparer::Preparer(const ChatModel& model, MemoryService& memory, int context_length)
    : model_(model),
      memory_(memory),
      context_length_(context_length),
      constraints_(model.tokenizer, model.model->n_vocab()),
      thinking_(model.tokenizer, model.model->n_vocab() - static_cast<int32_t>(model.suppressed_ids().size())) {}

Result<std::vector<int32_t>> Preparer::prompt_of(const ChatRequest& request) {
  TRY_ASSIGN(Prepared prepared, prepare(request));
  return Result<std::vector<int32_t>>{std::move(prepared.request.prompt)};
}

Result<std::string> Preparer::text_of(const ChatRequest& request) {
  TRY_ASSIGN(Prepared prepared, prepare(request));
  return Result<std::string>{std::move(prepared.rendered)};
}

Result<Prepared> Preparer::prepare(const CompletionRequest& request) {
  engine::Request generate = generation_request(request, model_.tokenizer);
  if (request.gap) {
    TRY_ASSIGN(generate.prompt, fill_in_prompt(model_.tokenizer, request.prompt, *request.gap));
  } else if (request.prompt_ids.empty()) {
    generate.prompt = model_.tokenizer.encode(request.prompt, EncodeMode::text, true);
  } else {
    generate.prompt = request.prompt_ids;
  }
  TRY_ASSIGN(const Constraints::Made form, constraints_.of_completion(request));
  bind(form, request, generate);
  // For the same text once more: several answers, or another try.
  if (generate.prompt.size() > 1) generate.snapshot_points = {static_cast<int32_t>(generate.prompt.size()) - 1};
  const std::string query = request.prompt_ids.empty() || request.memory.passages.empty()
                                ? request.prompt
                                : model_.tokenizer.decode(request.prompt_ids, false);
  TRY_ASSIGN(PassageMemory::Found found, memory_.passages().find(request.memory, query, request.deadline));
  return finished(request, std::move(generate), std::nullopt, std::move(found));
}

Result<Prepared> Preparer::prepare(const ChatRequest& request) {
  const chat::ChatTemplate* chat_template = model_.template_for(request);
  if (!chat_template) {
    return Error{Code::unsupported,
                 "messages: this model has no chat template, so it continues text and answers no messages: use "
                 "/v1/completions, or start the server with --chat-template FILE"};
  }
  chat::OutputOptions output;
  output.dialect = &chat_template->dialect();
  output.thought = chat_template->thought_markers();
  if (request.tool_choice != ToolChoice::none) output.tools = request.tools;
  TRY_ASSIGN(PassageMemory::Found found,
             memory_.passages().find(request.memory, question_of(request.messages), request.deadline));
  TRY(memory_.passages().join(request.looked_up, found));
  chat::ChatInput input;
  input.messages = request.messages;
  for (UsedPassage& note : recall(memory_, request, found.used, context_length_, input.messages)) {
    found.used.push_back(std::move(note));
  }
  // What a note or a passage tells needs no example.
  if (request.examples && embed_ && found.used.empty() && takes_learned(request) && request.tools.empty()) {
    // Bytes: a token has about four, and a quarter of the context is theirs.
    TRY(show_examples(*request.examples, model_.tokenizer, embed_, static_cast<size_t>(context_length_),
                      input.messages));
  }
  input.tools = request.tools;
  if (!request.tools.empty() && !chat_template->supports_tools()) {
    input.messages = tools_as_text(std::move(input.messages), request.tools);
    input.tools.clear();
    if (!output.dialect->is_framed) output.dialect = &chat::default_dialect();
  }
  // An answer that has begun has no thought before it, and a thought that has begun is one.
  const bool in_thought = goes_on_thinking(request);
  input.enable_thinking = request.goes_on ? in_thought : request.enable_thinking;
  input.add_generation_prompt = request.add_generation_prompt;
  input.tells_date = true;
  input.extra_kwargs_json = request.template_kwargs;
  chat::RenderAllowance allowance = chat_template->allowance();
  auto rendered = rendered_for(request, *chat_template, input, allowance);
  // Whatever stopped the template, it was this conversation that it could not render.
  if (!rendered) return Error{Code::invalid_argument, "chat template: " + rendered.error().message};
  output.starts_in_content = request.goes_on && !in_thought;
  output.starts_in_reasoning = in_thought || chat::ends_inside_reasoning(last_words(*rendered), output.thought);
  if (in_thought && model_.tokenizer.find_token(output.thought.open) < 0) {
    return Error{
        Code::invalid_argument,
        "messages: expected a text to go on with in the last message, found a thought alone: this model has no "
        "token '" +
            std::string(output.thought.open) + "'"};
  }
  engine::Request generate = generation_request(request, model_.tokenizer);
  generate.prompt = encode(model_.tokenizer, *rendered);
  Constraints::Lead lead;
  // The engine leaves a thought alone whose end is one token; others are part of the text it constrains.
  const bool has_end_token = model_.tokenizer.find_token(output.thought.close) >= 0;
  lead.blank_lines = output.starts_in_reasoning;
  if (output.starts_in_reasoning && !has_end_token) lead.thought_close = output.thought.close;
  TRY_ASSIGN(const Constraints::Made form, constraints_.of_chat(request, *output.dialect, lead));
  bind(form, request, generate);
  if (takes_learned(request)) generate.closing = closing_of(model_.tokenizer, request.closing, !output.tools.empty());
  const std::string before_answer = generation_prompt(*chat_template, allowance);
  generate.snapshot_points = snapshot_points(model_.tokenizer, before_answer, generate.prompt);
  const bool is_silent = input.enable_thinking == false || ends_after_thought(last_words(*rendered), output.thought);
  if (is_silent && !output.starts_in_reasoning) {
    ban_thoughts(model_.tokenizer, output.thought, generate.sampling);
  } else {
    const int32_t room = context_length_ - static_cast<int32_t>(generate.prompt.size());
    const int32_t asked = request.thinking_budget;
    const int32_t budget = asked >= 0 ? asked : default_budget(model_, request, room);
    generate.thought = thought_of(model_.tokenizer, output.thought, budget, form.allows_calls);
    generate.thought.open = generate.thought.open && output.starts_in_reasoning;
  }
  // Where a grammar can not tell a second call from text, the answer ends behind the first.
  const bool is_unbound = output.dialect->is_framed || output.dialect->may_lack_marker;
  const bool one_call = !request.parallel_tool_calls && !output.tools.empty() && is_unbound;
  TRY_ASSIGN(Prepared prepared,
             finished(request, std::move(generate), parser_for(output, in_thought), std::move(found), one_call));
  if (model_.tokenizer.adds_bos()) chat_template->drop_leading_bos(*rendered);
  prepared.rendered = std::move(rendered->text);
  return Result<Prepared>{std::move(prepared)};
}

// What of a request is the same for messages and for text.
Result<Prepared> Preparer::finished(const GenerateOptions& request, engine::Request generate,
                                    std::optional<chat::OutputParser> parser, PassageMemory::Found passages,
                                    bool one_call) {
  TRY_ASSIGN(TableSources tables, memory_.sources_for(request.memory, std::move(passages.tables)));
  generate.memory = std::move(tables.memory);
  generate.drafts = std::move(tables.drafts);
  TRY_ASSIGN(generate.adapters, model_.adapters_for(request.adapters));
  const ThinkingOptions steered = request.thinking.over(model_.thinking);
  generate.thinking = thinking_.resolve(steered);
  AnswerText text(
      model_.tokenizer, std::move(parser),
      {request.stop, request.logprobs || request.token_stats || request.token_ids, thinking_.max_entropy(), one_call});
  std::string shown = request.show_prompt ? model_.tokenizer.decode(generate.prompt, true) : std::string();
  Prepared prepared{std::move(generate), std::move(text), std::move(passages.used)};
  prepared.shown_prompt = std::move(shown);
  prepared.names_loops = steered.asks_for_loop_guard();
  return Result<Prepared>{std::move(prepared)};
}

}  // namespace chimere::orchestrator

// chat_template.cpp  Messages -> template variables -> marked text.
#include "chat/chat_template.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "chat/system_messages.h"
#include "jinja/json.h"

namespace chimere::chat {
namespace {

using jinja::Kind;
using jinja::Value;
using Entries = std::vector<std::pair<Value, Value>>;

constexpr std::string_view kNeedle = "chimere_probe_text";

// These words are chosen by us, not by the user: templates may build control tokens from them ('<|' + role + '|>').
bool is_known_role(std::string_view role) {
  constexpr std::array<std::string_view, 7> kRoles = {"system",    "user",     "assistant", "tool",
                                                      "developer", "function", "ipython"};
  return std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end();
}

void add(Entries& entries, const char* key, Value value) {
  entries.emplace_back(Value::string(key, false), std::move(value));
}

Value input_text(const std::string& text) { return Value::string(text, true); }

Value parts_of(const std::string& text) {
  Entries part;
  add(part, "type", Value::string("text", false));
  add(part, "text", input_text(text));
  return Value::list({Value::dict(std::move(part))});
}

Message user_message(std::string_view text) {
  Message message;
  message.role = "user";
  message.content = std::string(text);
  return message;
}

jinja::Limits probe_limits(jinja::Limits limits, uint64_t steps) {
  limits.max_steps = std::min(limits.max_steps, steps);
  limits.max_output_bytes = std::min(limits.max_output_bytes, size_t{1} << 20);
  limits.max_value_bytes = std::min(limits.max_value_bytes, size_t{1} << 20);
  limits.max_live_bytes = std::min(limits.max_live_bytes, size_t{16} << 20);
  limits.max_time = std::min(limits.max_time, std::chrono::milliseconds(2'000));
  return limits;
}

// Some templates pass over system messages that do not stand at the start. The first line is enough to know: parts are
// joined in the template's own way.
bool shows_later_system(const std::vector<Message>& messages, const std::string& rendered) {
  constexpr const char* kBlank = " \t\r\n";
  for (size_t i = 1; i < messages.size(); ++i) {
    if (!is_system(messages[i])) continue;
    const std::string text = text_of(messages[i]);
    const size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string::npos) continue;
    std::string line = text.substr(begin, text.find('\n', begin) - begin);
    line.resize(line.find_last_not_of(kBlank) + 1);
    if (rendered.find(line) == std::string::npos) return false;
  }
  return true;
}

Error in_field(Error error, const std::string& field) {
  error.message = field + ": " + error.message;
  return error;
}

}  // namespace

bool ends_inside_reasoning(std::string_view generation_prompt, const ThoughtMarkers& markers) {
  const size_t open = generation_prompt.rfind(markers.open);
  if (open == std::string_view::npos) return false;
  const size_t close = generation_prompt.rfind(markers.close);
  return close == std::string_view::npos || close < open;
}

Result<ChatTemplate> ChatTemplate::create(std::string_view source, std::string bos_text, std::string eos_text,
                                          const jinja::Limits& limits) {
  TRY_ASSIGN(jinja::Template parsed, jinja::Template::parse(source));
  ChatTemplate result(std::move(parsed), std::move(bos_text), std::move(eos_text), limits);
  result.dialect_ = &detect_dialect(source);
  result.thought_markers_ = detect_thought_markers(source);
  result.probe(source);
  return result;
}

// Learns by trying, because templates do not declare what they accept. A probe that fails to render says "no"; one that
// takes too long is the last, so that no file holds up a start.
void ChatTemplate::probe(std::string_view source) {
  const auto text_of = [&](ChatInput input) -> std::string {
    if (!warning_.empty()) return {};
    input.tells_date = true;
    const jinja::Limits limits = probe_limits(limits_, kProbeSteps - probe_steps_);
    uint64_t n_steps = 0;
    const Result<Rendered> rendered = render_with(input, limits, n_steps);
    probe_steps_ = std::min(probe_steps_ + n_steps, kProbeSteps);
    if (rendered) return rendered->text;
    if (rendered.error().message.ends_with("'functions' is undefined")) wants_functions_ = true;
    if (rendered.error().code == Code::exhausted) {
      probe_steps_ = kProbeSteps;
      warning_ = "the chat template does too much for a conversation of one word (" + rendered.error().message +
                 "): what it supports was not tried any further and counts as not supported";
    }
    return {};
  };
  const auto contains = [](const std::string& text, std::string_view what) {
    return text.find(what) != std::string::npos;
  };
  const auto mentions = [&](std::string_view what) { return source.find(what) != std::string_view::npos; };
  if (!mentions("reasoning_content") && mentions("message.thinking")) reasoning_key_ = "thinking";
  keeps_developer_ = mentions("developer");

  ChatInput plain;
  plain.messages = {user_message(kNeedle)};
  Message parts = user_message("");
  parts.content_parts_json = R"([{"type": "text", "text": ")" + std::string(kNeedle) + "\"}]";
  ChatInput with_parts;
  with_parts.messages = {parts};
  text_of(plain);  // may learn of `functions`, without which nothing else can be tried
  handles_parts_ = true;
  const std::string from_parts = text_of(with_parts);
  handles_parts_ =
      contains(from_parts, kNeedle) && !contains(from_parts, "'type'") && !contains(from_parts, "\"type\"");
  const std::string base = text_of(plain);
  requires_parts_ = handles_parts_ && !contains(base, kNeedle);

  ChatInput tools = plain;
  tools.tools = {Tool{R"({"type": "function", "function": {"name": "probe_tool", "description": "d", )"
                      R"("parameters": {"type": "object", "properties": {"probe_key": {"type": "string", )"
                      R"("description": "k"}}, "required": ["probe_key"]}}})"}};
  supports_tools_ = contains(text_of(tools), "probe_tool");

  ChatInput call = tools;
  Message assistant;
  assistant.role = "assistant";
  assistant.content = "";
  assistant.tool_calls = {ToolCall{"abcdef123", "probe_tool", R"({"probe_key": "probe_value"})"}};
  call.messages.push_back(assistant);
  call.add_generation_prompt = false;
  const std::string as_object = text_of(call);
  if (!contains(as_object, "probe_value") || contains(as_object, "{'probe_key'")) {
    arguments_as_object_ = false;
    if (!contains(text_of(call), "probe_value")) arguments_as_object_ = true;
  }

  ChatInput thinking = plain, silent = plain;
  thinking.enable_thinking = true;
  silent.enable_thinking = false;
  supports_thinking_switch_ = text_of(thinking) != text_of(silent);
}

Result<Value> ChatTemplate::message_value(const Message& message, bool parse_arguments) const {
  Entries entries;
  const std::string role = message.role == "developer" && !keeps_developer_ ? "system" : message.role;
  add(entries, "role", Value::string(role, !is_known_role(role)));
  if (!message.content_parts_json.empty()) {
    Result<Value> parts = jinja::value_from_json(message.content_parts_json, true);
    if (!parts) return in_field(std::move(parts.error()), "content of a message");
    add(entries, "content", handles_parts_ ? std::move(*parts) : input_text(text_of(message)));
  } else {
    const std::string text = message.content.value_or("");
    add(entries, "content", requires_parts_ ? parts_of(text) : input_text(text));
  }
  if (message.reasoning_content) add(entries, reasoning_key_, input_text(*message.reasoning_content));
  if (!message.tool_calls.empty()) {
    std::vector<Value> calls;
    for (const ToolCall& call : message.tool_calls) {
      Value arguments = input_text(call.arguments_json);
      if (parse_arguments) {
        Result<Value> parsed = jinja::value_from_json(call.arguments_json.empty() ? "{}" : call.arguments_json, true);
        if (parsed && parsed->is(Kind::dict)) arguments = std::move(*parsed);
      }
      Entries function, entry;
      add(function, "name", input_text(call.name));
      add(function, "arguments", std::move(arguments));
      if (!call.id.empty()) add(entry, "id", input_text(call.id));
      add(entry, "type", Value::string("function", false));
      add(entry, "function", Value::dict(std::move(function)));
      calls.push_back(Value::dict(std::move(entry)));
    }
    add(entries, "tool_calls", Value::list(std::move(calls)));
  }
  if (!message.tool_call_id.empty()) add(entries, "tool_call_id", input_text(message.tool_call_id));
  if (!message.name.empty()) add(entries, "name", input_text(message.name));
  return Value::dict(std::move(entries));
}

Result<Rendered> ChatTemplate::render_with(const ChatInput& input, const jinja::Limits& limits,
                                           uint64_t& n_steps) const {
  Entries globals;
  std::vector<Value> messages;
  for (const Message& message : input.messages) {
    TRY_ASSIGN(Value value, message_value(message, arguments_as_object_));
    messages.push_back(std::move(value));
  }
  add(globals, "messages", Value::list(std::move(messages)));
  std::vector<Value> tools;
  Value functions;
  for (size_t i = 0; i < input.tools.size(); ++i) {
    Result<Value> tool = jinja::value_from_json(input.tools[i].json, true);
    if (!tool) return in_field(std::move(tool.error()), "tool " + std::to_string(i));
    tools.push_back(std::move(*tool));
  }
  if (wants_functions_) {
    std::string list;
    for (const Tool& tool : input.tools) list += (list.empty() ? "" : ", ") + tool.json;
    functions = input_text("[" + list + "]");
  }
  add(globals, "tools", tools.empty() ? Value() : Value::list(std::move(tools)));
  add(globals, "documents", Value());
  add(globals, "add_generation_prompt", Value(input.add_generation_prompt));
  add(globals, "bos_token", Value::string(bos_text_, false));
  add(globals, "eos_token", Value::string(eos_text_, false));
  const size_t n_reserved = 6;
  if (wants_functions_) add(globals, "functions", std::move(functions));
  if (input.tells_date) {
    const std::tm now = input.clock();
    const auto text = [&now](const char* format) {
      char out[64];
      return std::string(out, std::strftime(out, sizeof out, format, &now));
    };
    add(globals, "date_string", Value::string(text("%d %b %Y"), false));
    add(globals, "datetime", Value::string(text("%b %d %Y %H:%M:%S %Z"), false));
  }
  if (input.enable_thinking) {
    // DeepSeek's templates call the same switch `thinking`.
    add(globals, "enable_thinking", Value(*input.enable_thinking));
    add(globals, "thinking", Value(*input.enable_thinking));
  }
  if (!input.extra_kwargs_json.empty()) {
    Result<Value> kwargs = jinja::value_from_json(input.extra_kwargs_json, true);
    if (!kwargs) return in_field(std::move(kwargs.error()), "chat_template_kwargs");
    if (!kwargs->is(Kind::dict)) {
      return Error{Code::invalid_argument,
                   "chat_template_kwargs: expected an object, found " + std::string(jinja::type_name(*kwargs))};
    }
    for (const auto& [key, value] : kwargs->dict().entries) {
      for (size_t i = 0; i < n_reserved; ++i) {
        const std::string& reserved = globals[i].first.bytes();
        if (key.bytes() == reserved && reserved != "documents") {
          return Error{Code::invalid_argument, "chat_template_kwargs: '" + reserved + "' cannot be set here"};
        }
      }
      globals.emplace_back(key, value);
    }
  }
  return template_.render(Value::dict(std::move(globals)), limits, input.clock, &n_steps);
}

RenderAllowance ChatTemplate::allowance() const {
  return {limits_.max_steps, std::chrono::steady_clock::now() + limits_.max_time};
}

Result<Rendered> ChatTemplate::render_once(const ChatInput& input, RenderAllowance& allowance) const {
  using std::chrono::milliseconds;
  const auto left = std::chrono::duration_cast<milliseconds>(allowance.deadline - std::chrono::steady_clock::now());
  jinja::Limits limits = limits_;
  limits.max_steps = allowance.steps;
  limits.max_time = std::max(left, milliseconds(0));
  uint64_t n_steps = 0;
  Result<Rendered> rendered = render_with(input, limits, n_steps);
  allowance.steps -= std::min(n_steps, allowance.steps);
  return rendered;
}

Result<Rendered> ChatTemplate::render(const ChatInput& input) const {
  RenderAllowance whole = allowance();
  return render(input, whole);
}

Result<Rendered> ChatTemplate::render(const ChatInput& input, RenderAllowance& allowance) const {
  Result<Rendered> rendered = render_once(input, allowance);
  if (std::none_of(input.messages.begin(), input.messages.end(), is_system)) return rendered;
  if (rendered && shows_later_system(input.messages, rendered->text)) return rendered;
  for (const SystemPlace place : {SystemPlace::among_users, SystemPlace::at_start, SystemPlace::in_first_user}) {
    ChatInput moved = input;
    moved.messages = with_system(input.messages, place);
    Result<Rendered> other = render_once(moved, allowance);
    if (other && shows_later_system(input.messages, other->text)) return other;
  }
  return rendered;
}

Result<Rendered> ChatTemplate::render_open(const ChatInput& input, RenderAllowance& allowance) const {
  ChatInput closed = input;
  closed.add_generation_prompt = false;
  TRY_ASSIGN(Rendered rendered, render(closed, allowance));
  // Whatever the template writes behind the text ends the turn. Templates often strip a text; its end comes back.
  while (!rendered.spans.empty() && !rendered.spans.back().is_input) rendered.spans.pop_back();
  const std::string content = input.messages.empty() ? std::string() : text_of(input.messages.back());
  const std::string_view kept = std::string_view(content).substr(0, content.find_last_not_of(" \t\r\n") + 1);
  std::string_view shown = rendered.text;
  shown = rendered.spans.empty()
              ? std::string_view()
              : shown.substr(rendered.spans.back().begin, rendered.spans.back().end - rendered.spans.back().begin);
  const size_t end = shown.find_last_not_of(" \t\r\n") + 1;
  const bool is_stripped = end == shown.size();
  shown = shown.substr(0, end);
  if (kept.empty() || shown.empty() || !(kept.ends_with(shown) || shown.ends_with(kept))) {
    return Error{Code::unsupported, "this template does not show the text of the last message at its end"};
  }
  rendered.text.resize(rendered.spans.back().end);
  if (is_stripped) rendered.text += content.substr(kept.size());
  rendered.spans.back().end = rendered.text.size();
  return Result<Rendered>{std::move(rendered)};
}

Result<std::string> ChatTemplate::generation_prompt(const ChatInput& input, RenderAllowance& allowance) const {
  ChatInput variant = input;
  variant.add_generation_prompt = true;
  TRY_ASSIGN(const Rendered with, render(variant, allowance));
  variant.add_generation_prompt = false;
  TRY_ASSIGN(const Rendered without, render(variant, allowance));
  const auto [first, second] =
      std::mismatch(with.text.begin(), with.text.end(), without.text.begin(), without.text.end());
  return std::string(first, with.text.end());
}

void ChatTemplate::drop_leading_bos(Rendered& rendered) const {
  const size_t n = bos_text_.size();
  if (n == 0 || !rendered.text.starts_with(bos_text_)) return;
  if (rendered.spans.empty() || rendered.spans.front().is_input || rendered.spans.front().end < n) return;
  rendered.text.erase(0, n);
  if (rendered.spans.front().end == n) rendered.spans.erase(rendered.spans.begin());
  for (Span& span : rendered.spans) {
    span.begin = span.begin < n ? 0 : span.begin - n;
    span.end -= n;
  }
}

}  // namespace chimere::chat

// output_parser.cpp  The state machine over generated text.
#include "chat/output_parser.h"

#include <algorithm>

#include "chat/markers.h"
#include "chat/text_scan.h"
#include "chat/tool_schema.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kFunctionTag = "<function=";

}  // namespace

OutputParser::OutputParser(const OutputOptions& options)
    : state_(!options.parse_reasoning      ? State::content
             : options.starts_in_reasoning ? State::reasoning
             : options.starts_in_content   ? (options.is_harmony ? State::harmony_body : State::content)
             : options.is_harmony          ? State::harmony_head
                                           : State::start),
      format_(options.format),
      is_harmony_(options.is_harmony),
      thought_(options.thought),
      parse_reasoning_(options.parse_reasoning),
      parse_tools_(!options.tools.empty()),
      tools_(declared_parameters(options.tools)) {}

void OutputParser::feed(std::string_view piece, std::vector<OutputEvent>& events) {
  events_ = &events;
  buffer_ += piece;
  while (step(false)) {
  }
  buffer_.erase(0, pos_);
  pos_ = 0;
}

void OutputParser::finish(std::vector<OutputEvent>& events, bool is_cut) {
  events_ = &events;
  while (step(true)) {
  }
  if (state_ == State::value || state_ == State::function_body) finish_function(is_cut);
  const bool is_harmony_call = state_ == State::harmony_body && harmony_kind_ == Kind::tool_call_begin;
  if (state_ == State::json_call || state_ == State::bare_call || is_harmony_call) finish_json_call(is_cut);
  if (state_ == State::call_open) call_was_content();
  if (state_ == State::harmony_body) state_ = harmony_kind_ == Kind::reasoning ? State::reasoning : State::content;
  if (state_ == State::content) {
    emit(Kind::content, text());
    emit_delta(Kind::content, held_space_, true);
  }
  close_channel(state_ == State::reasoning ? Kind::reasoning : Kind::content);
  buffer_.clear();
  pos_ = 0;
}

std::string_view OutputParser::call_marker() const {
  if (format_ == ToolFormat::llama3) return kPythonTag;
  return format_ == ToolFormat::mistral ? kToolCalls : kToolCallOpen;
}

void OutputParser::begin_bare() { state_ = State::bare_calls; }

// Llama writes its calls without any mark, but only at the start of an answer.
void OutputParser::begin_content() {
  if (parse_tools_ && format_ == ToolFormat::llama3) return begin_bare();
  state_ = State::content;
}

bool OutputParser::step(bool is_final) {
  switch (state_) {
    case State::start: return step_start(is_final);
    case State::reasoning: return step_reasoning(is_final);
    case State::after_reasoning: {
      consume(std::min(text().find_first_not_of("\r\n"), text().size()));
      if (text().empty()) return false;
      begin_content();
      return true;
    }
    case State::content: return step_content(is_final);
    case State::call_open: return step_call_open(is_final);
    case State::json_call: return step_json_call();
    case State::function_body: return step_function_body(is_final);
    case State::value: return step_value(is_final);
    case State::after_function: return step_after_function(is_final);
    case State::bare_calls: return step_bare_calls(is_final);
    case State::bare_call: return step_bare_call();
    case State::bare_next: return step_bare_next();
    case State::after_bare: return step_after_bare(is_final);
    case State::harmony_head: return step_harmony_head(is_final);
    case State::harmony_body: return step_harmony_body(is_final);
  }
  return false;
}

void OutputParser::skip_space() { consume(count_space(text())); }

void OutputParser::close_channel(Kind kind) {
  held_space_.clear();
  emit_delta(kind, "", true);
  channel_started_ = false;
}

void OutputParser::emit_delta(Kind kind, std::string_view text, bool is_last) {
  std::string delta = std::move(held_bytes_);
  held_bytes_.clear();
  delta += text;
  if (const size_t n = incomplete_utf8(delta); n > 0) {
    held_bytes_ = delta.substr(delta.size() - n);
    delta.resize(delta.size() - n);
    if (is_last) {
      held_bytes_.clear();
      delta += "\xef\xbf\xbd";
    }
  }
  if (!delta.empty()) events_->push_back(OutputEvent{kind, std::move(delta), 0});
}

void OutputParser::emit(Kind kind, std::string_view text) {
  // Reasoning is stripped; content loses only the whitespace around tool calls.
  if (!channel_started_ && (kind == Kind::reasoning || call_index_ >= 0)) {
    text.remove_prefix(count_space(text));
  }
  if (text.empty()) return;
  channel_started_ = true;
  const size_t end =
      text.size() - static_cast<size_t>(std::find_if_not(text.rbegin(), text.rend(), is_space) - text.rbegin());
  if (end == 0) {
    held_space_ += text;
    return;
  }
  std::string ready = std::move(held_space_);
  ready += text.substr(0, end);
  held_space_ = std::string(text.substr(end));
  emit_delta(kind, ready, false);
}

void OutputParser::begin_call(const std::string& name) {
  function_ = name;
  events_->push_back(OutputEvent{Kind::tool_call_begin, name, ++call_index_});
}

void OutputParser::emit_arguments(std::string text) {
  if (!text.empty()) events_->push_back(OutputEvent{Kind::tool_call_arguments, std::move(text), call_index_});
}

void OutputParser::emit_call_end() { events_->push_back(OutputEvent{Kind::tool_call_end, "", call_index_}); }

void OutputParser::call_was_content() {
  state_ = State::content;
  emit(Kind::content, opening_);
}

bool OutputParser::step_start(bool is_final) {
  const std::string_view rest = text().substr(count_space(text()));
  if (rest.starts_with(thought_.open)) {
    consume(text().size() - rest.size() + thought_.open.size());
    state_ = State::reasoning;
    return true;
  }
  if (!is_final && is_prefix_of(rest, thought_.open)) return false;
  if (text().empty()) return false;
  begin_content();
  return true;
}

bool OutputParser::step_reasoning(bool is_final) {
  if (!channel_started_) {
    // The prompt opened the block already, yet some models open it again.
    skip_space();
    if (text().starts_with(thought_.open)) {
      consume(thought_.open.size());
      return true;
    }
    if (!is_final && is_prefix_of(text(), thought_.open)) return false;
  }
  const size_t close = text().find(thought_.close);
  const size_t call = parse_tools_ ? text().find(call_marker()) : npos;
  const size_t end = std::min(close, call);
  if (end != npos) {
    emit(Kind::reasoning, text().substr(0, end));
    close_channel(Kind::reasoning);
    if (close < call) {
      consume(end + thought_.close.size());
      state_ = State::after_reasoning;
    } else {
      consume(end);
      open_call();
    }
    return true;
  }
  size_t held = 0;
  if (!is_final) {
    held = held_suffix(text(), thought_.close);
    if (parse_tools_) held = std::max(held, held_suffix(text(), call_marker()));
  }
  const size_t ready = text().size() - held;
  emit(Kind::reasoning, text().substr(0, ready));
  consume(ready);
  return false;
}

// REQUIRES: the text begins with the marker of a call.
void OutputParser::open_call() {
  if (has_bare_calls()) return begin_bare();
  consume(kToolCallOpen.size());
  opening_ = kToolCallOpen;
  state_ = State::call_open;
}

bool OutputParser::step_content(bool is_final) {
  size_t end = npos;
  size_t held = 0;
  std::string function;
  if (parse_tools_) {
    end = text().find(call_marker());
    held = held_suffix(text(), call_marker());
  }
  if (parse_tools_ && !has_bare_calls()) {
    // A call whose opening tag the model left out; only declared names count.
    for (const auto& [name, parameters] : tools_) {
      const std::string marker = std::string(kFunctionTag) + name + ">";
      const size_t found = text().find(marker);
      held = std::max(held, held_suffix(text(), marker));
      if (found >= end) continue;
      end = found;
      function = name;
    }
  }
  if (end != npos) {
    emit(Kind::content, text().substr(0, end));
    close_channel(Kind::content);
    consume(end);
    if (function.empty()) {
      open_call();
    } else {
      consume(kFunctionTag.size() + function.size() + 1);
      begin_function(function);
    }
    return true;
  }
  const size_t ready = text().size() - (is_final ? 0 : held);
  emit(Kind::content, text().substr(0, ready));
  consume(ready);
  return false;
}

void accumulate(const std::vector<OutputEvent>& events, ParsedOutput& output) {
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case OutputEvent::Kind::reasoning: output.reasoning += event.text; break;
      case OutputEvent::Kind::content: output.content += event.text; break;
      case OutputEvent::Kind::tool_call_begin:
        output.tool_calls.push_back(ToolCall{"", event.text, ""});
        output.has_incomplete_call = true;
        break;
      case OutputEvent::Kind::tool_call_arguments: output.tool_calls.back().arguments_json += event.text; break;
      case OutputEvent::Kind::tool_call_end: output.has_incomplete_call = false; break;
    }
  }
}

ParsedOutput parse_output(std::string_view text, const OutputOptions& options) {
  std::vector<OutputEvent> events;
  OutputParser parser(options);
  parser.feed(text, events);
  parser.finish(events);
  ParsedOutput output;
  accumulate(events, output);
  return output;
}

}  // namespace chimere::chat

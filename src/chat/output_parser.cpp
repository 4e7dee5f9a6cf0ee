// output_parser.cpp  The state machine over generated text.
#include "chat/output_parser.h"

#include <algorithm>

#include "chat/markers.h"
#include "chat/tool_schema.h"

namespace chimere::chat {
namespace {

using Kind = OutputEvent::Kind;

constexpr std::string_view kCallClose = "</tool_call>";
constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kFunctionClose = "</function>";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kParameterClose = "</parameter>";
constexpr size_t kMaxNameBytes = 256;
constexpr auto npos = std::string_view::npos;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

bool is_prefix_of(std::string_view text, std::string_view marker) {
  return text.size() < marker.size() && marker.starts_with(text);
}

size_t count_space(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_space) - text.begin());
}

// Bytes at the end that start a UTF-8 character without finishing it.
size_t incomplete_utf8(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const auto c = static_cast<unsigned char>(text[text.size() - n]);
    if ((c & 0xC0) == 0x80) continue;
    const size_t wanted = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return wanted > n ? n : 0;
  }
  return 0;
}

}  // namespace

OutputParser::OutputParser(const OutputOptions& options)
    : state_(!options.parse_reasoning      ? State::content
             : options.starts_in_reasoning ? State::reasoning
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
  if (state_ == State::harmony_body) state_ = harmony_kind_ == Kind::reasoning ? State::reasoning : State::content;
  if (!is_cut) end_open_call();
  if (state_ == State::call_open || state_ == State::json_call) call_was_content(text().size());
  if (state_ == State::content) emit_delta(Kind::content, held_space_, true);
  close_channel(state_ == State::reasoning ? Kind::reasoning : Kind::content);
  buffer_.clear();
  pos_ = 0;
}

// The model stopped without the tags that end a call; what it wrote of it counts.
void OutputParser::end_open_call() {
  if (state_ == State::value) {
    const size_t n_close =
        text().ends_with(kParameterClose) ? kParameterClose.size() : held_suffix(text(), kParameterClose);
    std::string_view value = text().substr(0, text().size() - n_close);
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    add_argument(key_, value);
    consume(text().size());
    state_ = State::function_body;
  }
  if (state_ == State::function_body) {
    end_call();
    state_ = State::after_function;
  }
  JsonCall call;
  if (state_ == State::json_call && parse_json_call(text(), call)) {
    consume(text().size());
    emit_call(call);
    state_ = State::after_function;
  }
}

void OutputParser::emit_call(const JsonCall& call) {
  begin_call(call.name);
  events_->push_back(OutputEvent{Kind::tool_call_arguments, call.arguments_json, call_index_});
  events_->push_back(OutputEvent{Kind::tool_call_end, "", call_index_});
}

std::string_view OutputParser::call_marker() const {
  if (format_ == ToolFormat::llama3) return kPythonTag;
  return format_ == ToolFormat::mistral ? kToolCalls : kToolCallOpen;
}

void OutputParser::begin_bare() {
  extent_ = {};
  state_ = State::bare_calls;
}

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
    case State::json_call: return step_json_call(is_final);
    case State::function_body: return step_function_body(is_final);
    case State::value: return step_value(is_final);
    case State::after_function: return step_after_function(is_final);
    case State::bare_calls: return step_bare_calls(is_final);
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

void OutputParser::call_was_content(size_t n) {
  state_ = State::content;
  emit(Kind::content, kToolCallOpen);
  emit(Kind::content, text().substr(0, n));
  consume(n);
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
      const std::string marker = std::string(kFunction) + name + ">";
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
      consume(kFunction.size() + function.size() + 1);
      begin_call(function);
    }
    return true;
  }
  const size_t ready = text().size() - (is_final ? 0 : held);
  emit(Kind::content, text().substr(0, ready));
  consume(ready);
  return false;
}

bool OutputParser::step_call_open(bool is_final) {
  const size_t n_space = count_space(text());
  const std::string_view rest = text().substr(n_space);
  if (rest.empty()) return false;
  if (rest.starts_with(kFunction)) {
    const size_t end = rest.find_first_of(">\n", kFunction.size());
    if (end != npos && rest[end] == '>' && end > kFunction.size()) {
      const std::string name(rest.substr(kFunction.size(), end - kFunction.size()));
      consume(n_space + end + 1);
      begin_call(name);
      return true;
    }
    if (end == npos && rest.size() <= kMaxNameBytes) return false;
  } else if (rest[0] == '{') {
    state_ = State::json_call;
    scan_ = n_space;
    in_string_ = after_backslash_ = false;
    return true;
  } else if (!is_final && is_prefix_of(rest, kFunction)) {
    return false;
  }
  call_was_content(0);
  return true;
}

bool OutputParser::step_json_call(bool) {
  for (; scan_ < text().size(); ++scan_) {
    const char c = text()[scan_];
    if (in_string_) {
      if (after_backslash_) {
        after_backslash_ = false;
      } else if (c == '\\') {
        after_backslash_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      continue;
    }
    if (c == '"') {
      in_string_ = true;
      continue;
    }
    if (c != '<') continue;
    const std::string_view rest = text().substr(scan_);
    if (is_prefix_of(rest, kCallClose)) return false;
    if (!rest.starts_with(kCallClose)) continue;
    JsonCall call;
    if (!parse_json_call(text().substr(0, scan_), call)) {
      call_was_content(scan_ + kCallClose.size());
      return true;
    }
    consume(scan_ + kCallClose.size());
    emit_call(call);
    state_ = State::after_function;
    return true;
  }
  return false;
}

void OutputParser::begin_call(const std::string& name) {
  function_ = name;
  seen_keys_.clear();
  events_->push_back(OutputEvent{Kind::tool_call_begin, name, ++call_index_});
  state_ = State::function_body;
}

void OutputParser::end_call() {
  events_->push_back(OutputEvent{Kind::tool_call_arguments, seen_keys_.empty() ? "{}" : "}", call_index_});
  events_->push_back(OutputEvent{Kind::tool_call_end, "", call_index_});
}

bool OutputParser::step_function_body(bool is_final) {
  // Anything but the three tags is noise.
  const auto could_be_tag = [&](std::string_view at) {
    for (const std::string_view tag : {kParameter, kFunctionClose, kCallClose}) {
      if (at.starts_with(tag) || (!is_final && is_prefix_of(at, tag))) return true;
    }
    return false;
  };
  size_t tag = text().find('<');
  while (tag != npos && !could_be_tag(text().substr(tag))) tag = text().find('<', tag + 1);
  consume(std::min(tag, text().size()));
  if (text().empty()) return false;
  const std::string_view s = text();
  if (s.starts_with(kParameter)) {
    const size_t end = s.find_first_of(">\n", kParameter.size());
    if (end == npos && s.size() <= kMaxNameBytes) return false;
    if (end != npos && s[end] == '>') {
      key_ = std::string(s.substr(kParameter.size(), end - kParameter.size()));
      consume(end + 1);
      scan_ = 0;
      state_ = State::value;
      return true;
    }
  } else if (s.starts_with(kFunctionClose)) {
    consume(kFunctionClose.size());
    end_call();
    state_ = State::after_function;
    return true;
  } else if (s.starts_with(kCallClose)) {
    end_call();
    state_ = State::after_function;
    return true;
  } else {
    return false;
  }
  consume(1);  // a parameter tag that never closes
  return true;
}

// A value ends at the first "\n</parameter>\n", or at a "</parameter>" that the next tag follows.
bool OutputParser::step_value(bool is_final) {
  const std::string_view s = text();
  while (true) {
    const size_t close = s.find(kParameterClose, scan_);
    if (close == npos) {
      const size_t keep = kParameterClose.size() - 1;
      scan_ = std::max(scan_, s.size() > keep ? s.size() - keep : 0);
      return false;
    }
    const std::string_view after = s.substr(close + kParameterClose.size());
    const bool on_own_line = close > 0 && s[close - 1] == '\n' && after.starts_with('\n');
    const size_t first = count_space(after);
    const std::string_view next = after.substr(first);
    bool ends = on_own_line;
    for (const std::string_view tag : {kParameter, kFunctionClose, kCallClose}) {
      if (next.starts_with(tag)) ends = true;
      if (!ends && !is_final && is_prefix_of(next, tag)) {
        scan_ = close;
        return false;
      }
    }
    if (!ends) {
      scan_ = close + 1;
      continue;
    }
    std::string_view value = s.substr(0, close);
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    add_argument(key_, value);
    consume(close + kParameterClose.size());
    state_ = State::function_body;
    return true;
  }
}

void OutputParser::add_argument(const std::string& key, std::string_view raw) {
  const bool is_first = seen_keys_.empty();
  if (!seen_keys_.insert(key).second) return;  // the first value of a repeated parameter stands
  JsonTypes types;
  if (const auto tool = tools_.find(function_); tool != tools_.end()) {
    if (const auto parameter = tool->second.find(key); parameter != tool->second.end()) types = parameter->second;
  }
  events_->push_back(OutputEvent{Kind::tool_call_arguments,
                                 (is_first ? "{" : ", ") + json_quoted(key) + ": " + json_of_argument(raw, types),
                                 call_index_});
}

bool OutputParser::step_after_function(bool is_final) {
  skip_space();
  if (text().empty()) return false;
  const std::string_view s = text();
  if (s.starts_with(kCallClose)) {
    consume(kCallClose.size());
    return true;
  }
  if (s.starts_with(kFunction)) {
    const size_t end = s.find_first_of(">\n", kFunction.size());
    if (end == npos && s.size() <= kMaxNameBytes && !is_final) return false;
    if (end != npos && s[end] == '>' && end > kFunction.size()) {
      const std::string name(s.substr(kFunction.size(), end - kFunction.size()));
      consume(end + 1);
      begin_call(name);
      return true;
    }
  } else if (!is_final && (is_prefix_of(s, kCallClose) || is_prefix_of(s, kFunction))) {
    return false;
  }
  state_ = State::content;
  return true;
}

bool OutputParser::step_bare_calls(bool is_final) {
  const BareHead head = read_bare_head(text(), format_);
  if (head.kind == BareHead::Kind::incomplete && !is_final) return false;
  const std::string_view trimmed = text().substr(count_space(text()));
  const bool is_marked = trimmed.starts_with(call_marker());
  size_t n_content = is_final ? text().size() : 0;
  if (head.kind == BareHead::Kind::found) {
    const std::string_view json = text().substr(head.json_begin);
    const std::optional<size_t> size = extent_.end(json);
    if (!size && !is_final) return false;
    if (size) {
      std::vector<JsonCall> calls;
      bool ok = parse_json_calls(json.substr(0, *size), head.name, calls);
      // JSON at the start of an answer may be the answer.
      for (const JsonCall& call : calls) ok = ok && (is_marked || tools_.count(call.name) > 0);
      n_content = head.json_begin + *size;
      if (ok) {
        consume(n_content);
        for (const JsonCall& call : calls) emit_call(call);
        state_ = State::after_bare;
        return true;
      }
    }
  } else if (is_marked) {
    n_content = text().size() - trimmed.size() + call_marker().size();
  }
  state_ = State::content;
  emit(Kind::content, text().substr(0, n_content));
  consume(n_content);
  return true;
}

bool OutputParser::step_after_bare(bool is_final) {
  while (!text().empty() && (is_space(text()[0]) || text()[0] == ';')) consume(1);
  if (text().empty() || (!is_final && is_prefix_of(text(), call_marker()))) return false;
  if (text().starts_with(call_marker()) || (format_ == ToolFormat::llama3 && text()[0] == '{')) {
    begin_bare();
  } else {
    state_ = State::content;
  }
  return true;
}

void accumulate(const std::vector<OutputEvent>& events, ParsedOutput& output) {
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case Kind::reasoning: output.reasoning += event.text; break;
      case Kind::content: output.content += event.text; break;
      case Kind::tool_call_begin:
        output.tool_calls.push_back(ToolCall{"", event.text, ""});
        output.has_incomplete_call = true;
        break;
      case Kind::tool_call_arguments: output.tool_calls.back().arguments_json += event.text; break;
      case Kind::tool_call_end: output.has_incomplete_call = false; break;
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
  if (output.has_incomplete_call) output.tool_calls.pop_back();
  return output;
}

}  // namespace chimere::chat

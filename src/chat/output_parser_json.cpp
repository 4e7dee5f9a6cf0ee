// output_parser_json.cpp  Calls written as JSON, between tags or bare. Their arguments go out while they are written.
#include "chat/output_parser.h"
#include "chat/text_scan.h"
#include "chat/tool_schema.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kJsonCallClose = "</tool_call>";
constexpr std::string_view kLineAndCallClose = "\n</tool_call>";

}  // namespace

void OutputParser::open_json(State state, std::string opening, std::string name, bool only_declared) {
  state_ = state;
  opening_ = std::move(opening);
  function_ = std::move(name);
  only_declared_ = only_declared;
  is_alone_ = false;
  part_ = JsonPart::head;
  copy_ = JsonCopy();
  extent_ = {};
  scan_ = 0;
  in_string_ = after_backslash_ = false;
}

void OutputParser::consume_json(size_t n) {
  consume(n);
  scan_ -= std::min(scan_, n);
}

// Reads on in the call that begins the text, of which the first `size` bytes are its own. `is_closed`: nothing of it
// follows them; then a call is `open` only when its arguments lack their end.
OutputParser::JsonProgress OutputParser::read_json_call(size_t size, bool is_closed) {
  std::string_view json = text().substr(0, size);
  if (!is_closed) json.remove_suffix(incomplete_utf8(json));
  if (part_ == JsonPart::end) {
    consume_json(json.size());
    return JsonProgress::done;
  }
  if (part_ == JsonPart::head) {
    const JsonCallHead head = read_call_head(json, function_);
    if (head.kind == JsonCallHead::Kind::incomplete && !is_closed) return JsonProgress::open;
    const bool is_known = !only_declared_ || tools_.count(head.name) > 0;
    part_ = head.kind == JsonCallHead::Kind::found && is_known ? JsonPart::arguments : JsonPart::whole;
    if (part_ == JsonPart::arguments) {
      is_alone_ = !function_.empty();
      begin_call(head.name);
      consume_json(head.arguments_begin);
      json.remove_prefix(head.arguments_begin);
    }
  }
  if (part_ == JsonPart::whole) return read_whole_call(json, is_closed);
  if (part_ == JsonPart::arguments) {
    std::string delta;
    const size_t n = copy_.read(json, delta);
    emit_arguments(std::move(delta));
    consume_json(n);
    json.remove_prefix(n);
    if (!copy_.is_complete()) return JsonProgress::open;
    part_ = JsonPart::rest;
    copy_ = JsonCopy(1);
  }
  if (!is_alone_) {
    std::string unused;
    consume_json(copy_.read(json, unused));
    if (!copy_.is_complete()) return JsonProgress::open;
  }
  emit_call_end();
  part_ = JsonPart::end;
  return JsonProgress::done;
}

OutputParser::JsonProgress OutputParser::read_whole_call(std::string_view json, bool is_closed) {
  const std::optional<size_t> size = extent_.end(json);
  if (!size && !is_closed) return JsonProgress::open;
  json = json.substr(0, size.value_or(json.size()));
  std::vector<JsonCall> calls;
  const bool is_call = parse_json_calls(json, function_, calls) && calls.size() == 1;
  if (!is_call || (only_declared_ && tools_.count(calls[0].name) == 0)) return JsonProgress::none;
  consume_json(json.size());
  begin_call(calls[0].name);
  emit_arguments(calls[0].arguments_json);
  emit_call_end();
  part_ = JsonPart::end;
  return JsonProgress::done;
}

// Moves scan_ to the tag that closes the call, or as far as there is none. A string may hold such a tag, but no valid
// one holds a line break before it.
bool OutputParser::scan_to_close() {
  for (; scan_ < text().size(); ++scan_) {
    const char c = text()[scan_];
    const std::string_view rest = text().substr(scan_);
    if (after_backslash_) {
      after_backslash_ = false;
    } else if (in_string_ && c == '\\') {
      after_backslash_ = true;
    } else if (c == '"') {
      in_string_ = !in_string_;
    } else if (c == '\n' || (c == '<' && !in_string_)) {
      const std::string_view close = c == '\n' ? kLineAndCallClose : kJsonCallClose;
      if (rest.starts_with(close)) return true;
      if (is_prefix_of(rest, close)) return false;
    }
  }
  return false;
}

bool OutputParser::step_json_call() {
  const bool is_closed = scan_to_close();
  switch (read_json_call(scan_, is_closed)) {
    case JsonProgress::none: call_was_content(); return true;
    case JsonProgress::open:
      if (!is_closed) return false;
      emit_call_end();  // the model closed the call before its JSON
      break;
    case JsonProgress::done: break;
  }
  state_ = State::after_function;
  return true;
}

bool OutputParser::step_bare_calls(bool is_final) {
  const BareHead head = read_bare_head(text(), format_);
  if (head.kind == BareHead::Kind::incomplete && !is_final) return false;
  const std::string_view trimmed = text().substr(count_space(text()));
  const bool is_marked = trimmed.starts_with(call_marker());
  if (head.kind == BareHead::Kind::found) {
    size_t begin = head.json_begin;
    in_array_ = head.name.empty() && text()[begin] == '[';
    if (in_array_) begin += 1 + count_space(text().substr(begin + 1));
    if (begin == text().size() && !is_final) return false;
    if (begin < text().size() && text()[begin] == '{') {
      const std::string opening(text().substr(0, begin));
      consume(begin);
      open_json(State::bare_call, opening, head.name, !is_marked);
      return true;
    }
  }
  opening_.clear();
  if (is_marked) {
    opening_ = text().substr(0, text().size() - trimmed.size() + call_marker().size());
    consume(opening_.size());
  }
  call_was_content();
  return true;
}

bool OutputParser::step_bare_call() {
  switch (read_json_call(text().size(), false)) {
    case JsonProgress::open: return false;
    case JsonProgress::none: call_was_content(); return true;
    case JsonProgress::done: state_ = in_array_ ? State::bare_next : State::after_bare; return true;
  }
  return false;
}

bool OutputParser::step_bare_next() {
  while (!text().empty() && (is_space(text()[0]) || text()[0] == ',')) consume(1);
  if (text().empty()) return false;
  if (text()[0] == '{') {
    open_json(State::bare_call, {}, {}, only_declared_);
  } else if (text()[0] == ']') {
    consume(1);
    state_ = State::after_bare;
  } else {
    state_ = State::content;
  }
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

// Nothing follows. A call whose arguments have not begun is one all the same if it names a tool.
void OutputParser::finish_json_call(bool is_cut) {
  if (part_ == JsonPart::head || part_ == JsonPart::whole) {
    const JsonCallHead head = read_call_head(text(), function_);
    const bool is_call = head.kind == JsonCallHead::Kind::incomplete && tools_.count(head.name) > 0;
    if (!is_call) return call_was_content();
    begin_call(head.name);
  } else if (part_ == JsonPart::rest && !is_cut) {
    emit_call_end();
  }
  consume(text().size());
  state_ = State::after_function;
}

}  // namespace chimere::chat

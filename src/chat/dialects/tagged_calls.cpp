#include "chat/dialects/tagged_calls.h"

#include <algorithm>

#include "chat/text_scan.h"
#include "chat/tool_schema.h"
#include "text/utf8.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kLineAndCallClose = "\n</tool_call>";
constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kFunctionClose = "</function>";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kParameterClose = "</parameter>";
constexpr std::string_view kLineAndClose = "\n</parameter>";
constexpr size_t kMaxNameBytes = 256;

std::string function_tag(const std::string& name) { return std::string(kFunction) + name + ">"; }

// The inside of a JSON string.
std::string escaped(std::string_view text) {
  const std::string quoted = json_quoted(text);
  return quoted.substr(1, quoted.size() - 2);
}

// A line break after the opening tag and one before the closing tag are not part of a value.
std::string_view without_frame(std::string_view raw) {
  if (raw.starts_with('\n')) raw.remove_prefix(1);
  if (raw.ends_with('\n')) raw.remove_suffix(1);
  return raw;
}

}  // namespace

CallPlace TaggedCalls::find(const OutputText& out) const {
  CallPlace place = find_marker(out.rest(), kToolCallOpen);
  for (const auto& [name, parameters] : out.tools()) {
    const CallPlace function = find_marker(out.rest(), function_tag(name));
    place = {std::min(place.at, function.at), std::max(place.held, function.held)};
  }
  return place;
}

void TaggedCalls::open(OutputText& out) {
  if (out.rest().starts_with(kToolCallOpen)) {
    out.consume(kToolCallOpen.size());
    state_ = State::opened;
    return;
  }
  const auto tool = std::find_if(out.tools().begin(), out.tools().end(),
                                 [&](const auto& one) { return out.rest().starts_with(function_tag(one.first)); });
  out.consume(function_tag(tool->first).size());
  begin_function(out, tool->first);
}

CallReader::Step TaggedCalls::step(OutputText& out, bool is_final) {
  switch (state_) {
    case State::opened: return step_opened(out, is_final);
    case State::json: return step_json(out);
    case State::body: return step_body(out, is_final);
    case State::value: return step_value(out, is_final);
    case State::behind: return step_behind(out, is_final);
  }
  return Step::content;
}

CallReader::Rest TaggedCalls::finish(OutputText& out, bool is_cut) {
  switch (state_) {
    case State::body:
    case State::value: finish_function(out, is_cut); return Rest::none;
    case State::json:
      if (call_.finish(out, is_cut)) return Rest::none;
      [[fallthrough]];
    case State::opened: was_content(out); return Rest::content;
    case State::behind: break;
  }
  return Rest::none;
}

// What looked like a call was none.
CallReader::Step TaggedCalls::was_content(OutputText& out) {
  out.emit(OutputEvent::Kind::content, kToolCallOpen);
  return Step::content;
}

CallReader::Step TaggedCalls::step_opened(OutputText& out, bool is_final) {
  const size_t n_space = count_space(out.rest());
  const std::string_view rest = out.rest().substr(n_space);
  if (rest.empty()) return Step::wait;
  if (rest.starts_with(kFunction)) {
    const size_t end = rest.find_first_of(">\n", kFunction.size());
    if (end != std::string_view::npos && rest[end] == '>' && end > kFunction.size()) {
      out.consume(n_space + end + 1);
      begin_function(out, std::string(rest.substr(kFunction.size(), end - kFunction.size())));
      return Step::again;
    }
    if (end == std::string_view::npos && rest.size() <= kMaxNameBytes) return Step::wait;
  } else if (rest[0] == '{') {
    call_ = JsonCallReader();
    scan_ = 0;
    in_string_ = after_backslash_ = false;
    state_ = State::json;
    return Step::again;
  } else if (!is_final && is_prefix_of(rest, kFunction)) {
    return Step::wait;
  }
  return was_content(out);
}

// Moves scan_ to the tag that closes the call, or as far as there is none. A string may hold such a tag, but no valid
// one holds a line break before it.
bool TaggedCalls::scan_to_close(std::string_view text) {
  for (; scan_ < text.size(); ++scan_) {
    const char c = text[scan_];
    const std::string_view rest = text.substr(scan_);
    if (after_backslash_) {
      after_backslash_ = false;
    } else if (in_string_ && c == '\\') {
      after_backslash_ = true;
    } else if (c == '"') {
      in_string_ = !in_string_;
    } else if (c == '\n' || (c == '<' && !in_string_)) {
      const std::string_view close = c == '\n' ? kLineAndCallClose : kToolCallClose;
      if (rest.starts_with(close)) return true;
      if (is_prefix_of(rest, close)) return false;
    }
  }
  return false;
}

CallReader::Step TaggedCalls::step_json(OutputText& out) {
  const bool is_closed = scan_to_close(out.rest());
  const size_t n_before = out.rest().size();
  const JsonCallReader::Progress progress = call_.read(out, scan_, is_closed);
  scan_ -= std::min(scan_, n_before - out.rest().size());
  if (progress == JsonCallReader::Progress::none) return was_content(out);
  if (progress == JsonCallReader::Progress::open) {
    if (!is_closed) return Step::wait;
    out.end_call();  // the model closed the call before its JSON
  }
  state_ = State::behind;
  return Step::again;
}

void TaggedCalls::begin_function(OutputText& out, const std::string& name) {
  function_ = name;
  out.begin_call(name);
  seen_keys_.clear();
  state_ = State::body;
}

void TaggedCalls::end_function(OutputText& out) {
  out.emit_arguments(seen_keys_.empty() ? "{}" : "}");
  out.end_call();
  state_ = State::behind;
}

CallReader::Step TaggedCalls::step_body(OutputText& out, bool is_final) {
  // Anything but the three tags is noise.
  const auto could_be_tag = [&](std::string_view at) {
    for (const std::string_view tag : {kParameter, kFunctionClose, kToolCallClose}) {
      if (at.starts_with(tag) || (!is_final && is_prefix_of(at, tag))) return true;
    }
    return false;
  };
  const std::string_view all = out.rest();
  size_t tag = all.find('<');
  while (tag != std::string_view::npos && !could_be_tag(all.substr(tag))) tag = all.find('<', tag + 1);
  out.consume(std::min(tag, all.size()));
  const std::string_view s = out.rest();
  if (s.starts_with(kParameter)) {
    const size_t end = s.find_first_of(">\n", kParameter.size());
    if (end == std::string_view::npos && s.size() <= kMaxNameBytes) return Step::wait;
    if (end != std::string_view::npos && s[end] == '>') {
      out.consume(end + 1);
      begin_value(out, std::string(s.substr(kParameter.size(), end - kParameter.size())));
    } else {
      out.consume(1);  // a parameter tag that never closes
    }
    return Step::again;
  }
  if (s.starts_with(kFunctionClose)) {
    out.consume(kFunctionClose.size());
  } else if (!s.starts_with(kToolCallClose)) {
    return Step::wait;
  }
  end_function(out);
  return Step::again;
}

void TaggedCalls::begin_value(OutputText& out, std::string key) {
  key_ = std::move(key);
  types_.clear();
  if (const auto tool = out.tools().find(function_); tool != out.tools().end()) {
    if (const auto parameter = tool->second.find(key_); parameter != tool->second.end()) types_ = parameter->second;
  }
  is_repeated_ = seen_keys_.count(key_) > 0;
  is_text_ = false;
  scan_ = 0;
  state_ = State::value;
}

std::string TaggedCalls::argument_opening() {
  const bool is_first = seen_keys_.empty();
  seen_keys_.insert(key_);
  return (is_first ? "{" : ", ") + json_quoted(key_) + ": ";
}

// A value ends at the first "\n</parameter>\n", or at a "</parameter>" that the next tag follows.
CallReader::Step TaggedCalls::step_value(OutputText& out, bool is_final) {
  while (true) {
    const std::string_view s = out.rest();
    const size_t close = s.find(kParameterClose, scan_);
    if (close == std::string_view::npos) {
      const size_t held = std::max(held_suffix(s, kLineAndClose), held_suffix(s, kParameterClose));
      scan_ = std::max(scan_, s.size() - held);
      stream_value(out, s.size() - held);
      return Step::wait;
    }
    const bool is_on_line = close > 0 && s[close - 1] == '\n';
    const std::string_view after = s.substr(close + kParameterClose.size());
    const std::string_view next = after.substr(count_space(after));
    bool ends = is_on_line && after.starts_with('\n');
    bool may_end = false;
    for (const std::string_view tag : {kParameter, kFunctionClose, kToolCallClose}) {
      ends = ends || next.starts_with(tag);
      may_end = may_end || is_prefix_of(next, tag);
    }
    if (!ends && may_end && !is_final) {
      scan_ = close;
      stream_value(out, close - (is_on_line ? 1 : 0));
      return Step::wait;
    }
    if (!ends && !may_end) {
      scan_ = close + 1;
      continue;
    }
    end_value(out, s.substr(0, close));
    out.consume(close + kParameterClose.size());
    state_ = State::body;
    return Step::again;
  }
}

// The first n bytes of the text are part of the value.
void TaggedCalls::stream_value(OutputText& out, size_t n) {
  std::string_view raw = out.rest().substr(0, n);
  raw.remove_suffix(incomplete_utf8(raw));
  if (raw.empty() || is_repeated_) return;
  const size_t n_used = raw.size();
  if (!is_text_) {
    if (raw.starts_with('\n')) raw.remove_prefix(1);
    if (!is_surely_text(raw, types_)) return;
    out.emit_arguments(argument_opening() + "\"");
    is_text_ = true;
  }
  out.emit_arguments(escaped(raw));
  out.consume(n_used);
  scan_ -= std::min(scan_, n_used);
}

void TaggedCalls::end_value(OutputText& out, std::string_view raw) {
  if (is_repeated_) return;
  if (is_text_) {
    if (raw.ends_with('\n')) raw.remove_suffix(1);
    return out.emit_arguments(escaped(raw) + "\"");
  }
  out.emit_arguments(argument_opening() + json_of_argument(without_frame(raw), types_));
}

// The tags that end a call are missing. Where the model stopped by itself, what it wrote of it counts.
void TaggedCalls::finish_function(OutputText& out, bool is_cut) {
  if (state_ == State::value) {
    const std::string_view s = out.rest();
    const size_t held = std::max(held_suffix(s, kLineAndClose), held_suffix(s, kParameterClose));
    const size_t begin = count_space(s);
    if (!is_cut) {
      end_value(out, s.substr(0, s.size() - held_suffix(s, kParameterClose)));
    } else if (!is_text_ && !is_repeated_ && begin < s.size() && (s[begin] == '{' || s[begin] == '[')) {
      // The start of a number or a word is dropped: nobody can say what it would have become.
      const std::string_view value = s.substr(begin, s.size() - held - begin);
      out.emit_arguments(argument_opening() + std::string(value.substr(0, value.size() - incomplete_utf8(value))));
    }
  }
  out.consume(out.rest().size());
  if (!is_cut) end_function(out);
}

CallReader::Step TaggedCalls::step_behind(OutputText& out, bool is_final) {
  out.skip_space();
  const std::string_view s = out.rest();
  if (s.empty()) return Step::wait;
  if (s.starts_with(kToolCallClose)) {
    out.consume(kToolCallClose.size());
    return Step::again;
  }
  if (s.starts_with(kFunction)) {
    const size_t end = s.find_first_of(">\n", kFunction.size());
    if (end == std::string_view::npos && s.size() <= kMaxNameBytes && !is_final) return Step::wait;
    if (end != std::string_view::npos && s[end] == '>' && end > kFunction.size()) {
      out.consume(end + 1);
      begin_function(out, std::string(s.substr(kFunction.size(), end - kFunction.size())));
      return Step::again;
    }
  } else if (is_prefix_of(s, kToolCallClose) || is_prefix_of(s, kFunction)) {
    if (is_final) out.consume(s.size());  // a tag that was cut off
    return Step::wait;
  }
  return Step::content;
}

}  // namespace chimere::chat

// output_parser_tags.cpp  Calls written as tags, whose arguments become JSON while they are written.
//
//   <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>
#include "chat/output_parser.h"
#include "chat/text_scan.h"
#include "chat/tool_schema.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kCallCloseTag = "</tool_call>";
constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kFunctionClose = "</function>";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kParameterClose = "</parameter>";
constexpr std::string_view kLineAndClose = "\n</parameter>";
constexpr size_t kMaxNameBytes = 256;

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

bool OutputParser::step_call_open(bool is_final) {
  const size_t n_space = count_space(text());
  const std::string_view rest = text().substr(n_space);
  if (rest.empty()) return false;
  if (rest.starts_with(kFunction)) {
    const size_t end = rest.find_first_of(">\n", kFunction.size());
    if (end != std::string_view::npos && rest[end] == '>' && end > kFunction.size()) {
      const std::string name(rest.substr(kFunction.size(), end - kFunction.size()));
      consume(n_space + end + 1);
      begin_function(name);
      return true;
    }
    if (end == std::string_view::npos && rest.size() <= kMaxNameBytes) return false;
  } else if (rest[0] == '{') {
    open_json(State::json_call, opening_, {}, false);
    return true;
  } else if (!is_final && is_prefix_of(rest, kFunction)) {
    return false;
  }
  call_was_content();
  return true;
}

void OutputParser::begin_function(const std::string& name) {
  begin_call(name);
  seen_keys_.clear();
  state_ = State::function_body;
}

void OutputParser::end_call() {
  emit_arguments(seen_keys_.empty() ? "{}" : "}");
  emit_call_end();
  state_ = State::after_function;
}

bool OutputParser::step_function_body(bool is_final) {
  // Anything but the three tags is noise.
  const auto could_be_tag = [&](std::string_view at) {
    for (const std::string_view tag : {kParameter, kFunctionClose, kCallCloseTag}) {
      if (at.starts_with(tag) || (!is_final && is_prefix_of(at, tag))) return true;
    }
    return false;
  };
  size_t tag = text().find('<');
  while (tag != std::string_view::npos && !could_be_tag(text().substr(tag))) tag = text().find('<', tag + 1);
  consume(std::min(tag, text().size()));
  if (text().empty()) return false;
  const std::string_view s = text();
  if (s.starts_with(kParameter)) {
    const size_t end = s.find_first_of(">\n", kParameter.size());
    if (end == std::string_view::npos && s.size() <= kMaxNameBytes) return false;
    if (end != std::string_view::npos && s[end] == '>') {
      std::string key(s.substr(kParameter.size(), end - kParameter.size()));
      consume(end + 1);
      begin_value(std::move(key));
      return true;
    }
  } else if (s.starts_with(kFunctionClose)) {
    consume(kFunctionClose.size());
    end_call();
    return true;
  } else if (s.starts_with(kCallCloseTag)) {
    end_call();
    return true;
  } else {
    return false;
  }
  consume(1);  // a parameter tag that never closes
  return true;
}

void OutputParser::begin_value(std::string key) {
  key_ = std::move(key);
  types_.clear();
  if (const auto tool = tools_.find(function_); tool != tools_.end()) {
    if (const auto parameter = tool->second.find(key_); parameter != tool->second.end()) types_ = parameter->second;
  }
  is_repeated_ = seen_keys_.count(key_) > 0;
  is_text_ = false;
  scan_ = 0;
  state_ = State::value;
}

std::string OutputParser::argument_opening(const std::string& key) {
  const bool is_first = seen_keys_.empty();
  seen_keys_.insert(key);
  return (is_first ? "{" : ", ") + json_quoted(key) + ": ";
}

// A value ends at the first "\n</parameter>\n", or at a "</parameter>" that the next tag follows.
bool OutputParser::step_value(bool is_final) {
  while (true) {
    const std::string_view s = text();
    const size_t close = s.find(kParameterClose, scan_);
    if (close == std::string_view::npos) {
      const size_t held = std::max(held_suffix(s, kLineAndClose), held_suffix(s, kParameterClose));
      scan_ = std::max(scan_, s.size() - held);
      stream_value(s.size() - held);
      return false;
    }
    const bool is_on_line = close > 0 && s[close - 1] == '\n';
    const std::string_view after = s.substr(close + kParameterClose.size());
    const std::string_view next = after.substr(count_space(after));
    bool ends = is_on_line && after.starts_with('\n');
    bool may_end = false;
    for (const std::string_view tag : {kParameter, kFunctionClose, kCallCloseTag}) {
      ends = ends || next.starts_with(tag);
      may_end = may_end || is_prefix_of(next, tag);
    }
    if (!ends && may_end && !is_final) {
      scan_ = close;
      stream_value(close - (is_on_line ? 1 : 0));
      return false;
    }
    if (!ends && !may_end) {
      scan_ = close + 1;
      continue;
    }
    end_value(s.substr(0, close));
    consume(close + kParameterClose.size());
    state_ = State::function_body;
    return true;
  }
}

// The first n bytes of the text are part of the value.
void OutputParser::stream_value(size_t n) {
  std::string_view raw = text().substr(0, n);
  raw.remove_suffix(incomplete_utf8(raw));
  if (raw.empty() || is_repeated_) return;
  const size_t n_used = raw.size();
  if (!is_text_) {
    if (raw.starts_with('\n')) raw.remove_prefix(1);
    if (!is_surely_text(raw, types_)) return;
    emit_arguments(argument_opening(key_) + "\"");
    is_text_ = true;
  }
  emit_arguments(escaped(raw));
  consume(n_used);
  scan_ -= std::min(scan_, n_used);
}

void OutputParser::end_value(std::string_view raw) {
  if (is_repeated_) return;
  if (is_text_) {
    if (raw.ends_with('\n')) raw.remove_suffix(1);
    return emit_arguments(escaped(raw) + "\"");
  }
  emit_arguments(argument_opening(key_) + json_of_argument(without_frame(raw), types_));
}

// The tags that end a call are missing. Where the model stopped by itself, what it wrote of it counts.
void OutputParser::finish_function(bool is_cut) {
  if (state_ == State::value) {
    const std::string_view s = text();
    const size_t held = std::max(held_suffix(s, kLineAndClose), held_suffix(s, kParameterClose));
    const size_t begin = count_space(s);
    if (!is_cut) {
      end_value(s.substr(0, s.size() - held_suffix(s, kParameterClose)));
    } else if (!is_text_ && !is_repeated_ && begin < s.size() && (s[begin] == '{' || s[begin] == '[')) {
      // The start of a number or a word is dropped: nobody can say what it would have become.
      const std::string_view value = s.substr(begin, s.size() - held - begin);
      emit_arguments(argument_opening(key_) + std::string(value.substr(0, value.size() - incomplete_utf8(value))));
    }
    state_ = State::function_body;
  }
  consume(text().size());
  if (!is_cut) return end_call();
  state_ = State::after_function;
}

bool OutputParser::step_after_function(bool is_final) {
  skip_space();
  if (text().empty()) return false;
  const std::string_view s = text();
  if (s.starts_with(kCallCloseTag)) {
    consume(kCallCloseTag.size());
    return true;
  }
  if (s.starts_with(kFunction)) {
    const size_t end = s.find_first_of(">\n", kFunction.size());
    if (end == std::string_view::npos && s.size() <= kMaxNameBytes && !is_final) return false;
    if (end != std::string_view::npos && s[end] == '>' && end > kFunction.size()) {
      const std::string name(s.substr(kFunction.size(), end - kFunction.size()));
      consume(end + 1);
      begin_function(name);
      return true;
    }
  } else if (is_prefix_of(s, kCallCloseTag) || is_prefix_of(s, kFunction)) {
    if (is_final) consume(s.size());  // a tag that was cut off
    return false;
  }
  state_ = State::content;
  return true;
}

}  // namespace chimere::chat

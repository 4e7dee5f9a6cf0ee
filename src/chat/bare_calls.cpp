// bare_calls.cpp  Where the JSON of a bare call begins and ends.
#include "chat/bare_calls.h"

#include "chat/text_scan.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kArgs = "[ARGS]";
constexpr std::string_view kCallId = "[CALL_ID]";
constexpr size_t kMaxBareHeadBytes = 512;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r')) ++at;
  return at;
}

// NAME[CALL_ID]ID[ARGS]{ with the parts in brackets left out at will.
BareHead read_named_head(std::string_view text, size_t at) {
  using Kind = BareHead::Kind;
  size_t end = at;
  while (end < text.size() && is_name_char(text[end])) ++end;
  BareHead head{Kind::none, std::string(text.substr(at, end - at)), 0};
  if (head.name.empty()) return head;
  size_t next = skip_space(text, end);
  std::string_view rest = text.substr(next);
  if (is_prefix_of(rest, kArgs) || is_prefix_of(rest, kCallId)) return {Kind::incomplete, {}, 0};
  if (rest.starts_with(kCallId)) {
    const size_t args = text.find(kArgs, next);
    if (args == npos) return {text.size() < kMaxBareHeadBytes ? Kind::incomplete : Kind::none, {}, 0};
    next = args;
    rest = text.substr(next);
  }
  if (rest.starts_with(kArgs)) next = skip_space(text, next + kArgs.size());
  if (next >= text.size()) return {Kind::incomplete, {}, 0};
  if (text[next] != '{') return head;
  head.kind = Kind::found;
  head.json_begin = next;
  return head;
}

}  // namespace

std::optional<size_t> JsonExtent::end(std::string_view text) {
  for (; seen_ < text.size(); ++seen_) {
    const char c = text[seen_];
    if (in_string_) {
      if (after_backslash_) {
        after_backslash_ = false;
      } else if (c == '\\') {
        after_backslash_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ <= 0) {
      return ++seen_;
    }
  }
  return std::nullopt;
}

BareHead read_bare_head(std::string_view text, ToolFormat format) {
  using Kind = BareHead::Kind;
  const std::string_view marker = format == ToolFormat::mistral ? kToolCalls : kPythonTag;
  size_t at = skip_space(text, 0);
  const std::string_view rest = text.substr(at);
  if (rest.empty() || is_prefix_of(rest, marker)) return {Kind::incomplete, {}, 0};
  const bool marked = rest.starts_with(marker);
  if (marked) at = skip_space(text, at + marker.size());
  if (at >= text.size()) return {Kind::incomplete, {}, 0};
  const bool bracket = text[at] == '{' || text[at] == '[';
  if (format == ToolFormat::llama3) return {bracket ? Kind::found : Kind::none, {}, at};
  if (!marked) return {Kind::none, {}, 0};
  return bracket ? BareHead{Kind::found, {}, at} : read_named_head(text, at);
}

}  // namespace chimere::chat

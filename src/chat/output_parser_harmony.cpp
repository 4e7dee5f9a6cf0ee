// output_parser_harmony.cpp  The messages of gpt-oss: every one says in its head for whom it is.
//
//   <|channel|>analysis<|message|>THOUGHT<|end|>
//   <|start|>assistant<|channel|>final<|message|>TEXT
//   <|start|>assistant to=functions.NAME<|channel|>commentary <|constrain|>json<|message|>{...}
// The recipient of a call may also stand behind the channel.
#include <algorithm>
#include <array>

#include "chat/output_parser.h"
#include "chat/text_scan.h"
#include "chat/tool_schema.h"

namespace chimere::chat {
namespace {

constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::array<std::string_view, 5> kEnds = {"<|end|>", "<|return|>", "<|call|>", kStart, kChannel};
constexpr std::string_view kRecipient = " to=functions.";
constexpr size_t kMaxHarmonyHeadBytes = 512;

// The word that follows `label`; empty when there is no such label.
std::string word_after(std::string_view head, std::string_view label) {
  const size_t at = head.find(label);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = head.substr(at + label.size());
  return std::string(rest.substr(0, rest.find_first_of(" <\n")));
}

}  // namespace

bool OutputParser::step_harmony_head(bool is_final) {
  const std::string_view rest = text().substr(std::min(text().find_first_not_of(" \n"), text().size()));
  if (rest.empty()) return false;
  const auto may_begin = [&](std::string_view marker) {
    return rest.starts_with(marker) || (!is_final && marker.starts_with(rest));
  };
  const size_t end = text().find(kMessage);
  const bool is_head = (may_begin(kStart) || may_begin(kChannel)) &&
                       (end != std::string_view::npos || rest.size() <= kMaxHarmonyHeadBytes);
  if (is_head && end == std::string_view::npos && !is_final) return false;
  if (!is_head || end == std::string_view::npos) {
    state_ = State::content;
    return true;
  }
  const std::string_view head = text().substr(0, end);
  function_ = parse_tools_ ? word_after(head, kRecipient) : std::string();
  harmony_kind_ = !function_.empty()                         ? Kind::tool_call_begin
                  : word_after(head, kChannel) == "analysis" ? Kind::reasoning
                                                             : Kind::content;
  consume(end + kMessage.size());
  open_json(State::harmony_body, {}, function_, false);
  return true;
}

bool OutputParser::step_harmony_body(bool is_final) {
  size_t end = std::string_view::npos, held = 0;
  std::string_view marker;
  for (const std::string_view one : kEnds) {
    const size_t found = text().find(one, scan_);
    held = std::max(held, held_suffix(text(), one));
    if (found >= end) continue;
    end = found;
    marker = one;
  }
  const bool is_closed = end != std::string_view::npos;
  if (harmony_kind_ == Kind::tool_call_begin) {
    scan_ = is_closed ? end : text().size() - held;
    const JsonProgress progress = read_json_call(scan_, is_closed);
    if (progress == JsonProgress::none) {
      harmony_kind_ = Kind::content;
      scan_ = 0;
      return true;
    }
    if (!is_closed) return false;
    if (progress == JsonProgress::open) emit_call_end();
    end = text().find(marker);
  } else {
    const size_t ready = is_closed ? end : text().size() - (is_final ? 0 : held);
    emit(harmony_kind_, text().substr(0, ready));
    consume(ready);
    if (!is_closed) return false;
    close_channel(harmony_kind_);
    end = 0;
  }
  consume(end);
  if (marker != kStart && marker != kChannel) consume(marker.size());
  state_ = State::harmony_head;
  return true;
}

}  // namespace chimere::chat

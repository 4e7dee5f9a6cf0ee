#include "chat/output_text.h"

#include <algorithm>

#include "chat/text_scan.h"
#include "text/utf8.h"

namespace chimere::chat {

void OutputText::feed(std::string_view piece, std::vector<OutputEvent>& events) {
  events_ = &events;
  buffer_ += piece;
}

void OutputText::skip_space() { consume(count_space(rest())); }

void OutputText::drop_consumed() {
  buffer_.erase(0, pos_);
  pos_ = 0;
}

void OutputText::emit_delta(Kind kind, std::string_view text, bool is_last) {
  std::string delta = std::move(held_bytes_);
  held_bytes_.clear();
  delta += text;
  if (const size_t n = incomplete_utf8(delta); n > 0) {
    held_bytes_ = delta.substr(delta.size() - n);
    delta.resize(delta.size() - n);
    if (is_last) {
      held_bytes_.clear();
      delta += kReplacementChar;
    }
  }
  if (!delta.empty()) events_->push_back(OutputEvent{kind, std::move(delta), 0});
}

void OutputText::emit(Kind kind, std::string_view text) {
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

void OutputText::emit_held_space() { emit_delta(Kind::content, held_space_, true); }

void OutputText::close_channel(Kind kind) {
  held_space_.clear();
  emit_delta(kind, "", true);
  channel_started_ = false;
}

void OutputText::begin_call(const std::string& name) {
  events_->push_back(OutputEvent{Kind::tool_call_begin, name, ++call_index_});
}

void OutputText::emit_arguments(std::string text) {
  if (!text.empty()) events_->push_back(OutputEvent{Kind::tool_call_arguments, std::move(text), call_index_});
}

void OutputText::end_call() { events_->push_back(OutputEvent{Kind::tool_call_end, "", call_index_}); }

}  // namespace chimere::chat

// output_text.h  Generated text on its way to events: what is not read yet, and what was made of the rest.
//
// No delta ends inside a UTF-8 character. Whitespace at both ends of a channel is held back.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "chat/message.h"
#include "chat/tool_schema.h"

namespace chimere::chat {

struct OutputEvent {
  enum class Kind { reasoning, content, tool_call_begin, tool_call_arguments, tool_call_end };
  Kind kind;
  std::string text;    // the delta; for tool_call_begin the name of the function
  int call_index = 0;  // of tool-call events
  bool operator==(const OutputEvent&) const = default;
};

class OutputText {
 public:
  using Kind = OutputEvent::Kind;

  explicit OutputText(const std::vector<Tool>& tools)
      : has_tools_(!tools.empty()), tools_(declared_parameters(tools)) {}

  // Appends to what is not read yet. What follows from it goes to `events` until the next call.
  void feed(std::string_view piece, std::vector<OutputEvent>& events);
  std::string_view rest() const { return std::string_view(buffer_).substr(pos_); }  // not consumed yet
  void consume(size_t n) { pos_ += n; }  // views of the text stay valid until drop_consumed()
  void skip_space();
  void drop_consumed();

  // Reasoning or content.
  void emit(Kind kind, std::string_view text);
  // The whitespace that was held back belongs to the content after all.
  void emit_held_space();
  void close_channel(Kind kind);
  bool is_channel_open() const { return channel_started_; }

  void begin_call(const std::string& name);
  void emit_arguments(std::string text);
  void end_call();

  bool has_tools() const { return has_tools_; }  // tool calls are looked for
  const ToolParameters& tools() const { return tools_; }
  bool is_declared(const std::string& function) const { return tools_.count(function) > 0; }

 private:
  void emit_delta(Kind kind, std::string_view text, bool is_last);

  bool has_tools_;
  ToolParameters tools_;
  std::vector<OutputEvent>* events_ = nullptr;
  std::string buffer_;
  size_t pos_ = 0;
  std::string held_space_;  // whitespace that is dropped if nothing follows it in this channel
  std::string held_bytes_;  // the start of a UTF-8 character
  bool channel_started_ = false;
  int call_index_ = -1;
};

}  // namespace chimere::chat

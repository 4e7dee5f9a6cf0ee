// output_parser.h  Generated text -> reasoning, content and tool calls, while it streams.
//
// The forms of tool calls are those of tool_format.h. What turns out to be none is content, as it was written. The
// result does not depend on how the text was cut into pieces, and no delta ends inside a UTF-8 character. Whatever
// could still turn out to be the start of a marker is held back.
//
// Arguments come while they are written, and what has come is never taken back. In the form of tags a text goes out
// piece by piece and a value of another type when it is complete, because its type is known only then. In the forms of
// JSON everything goes out as soon as name and first bracket are there. Of a call that is cut off, what there was
// stays.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chat/bare_calls.h"
#include "chat/json_stream.h"
#include "chat/message.h"
#include "chat/tool_format.h"

namespace chimere::chat {

struct OutputEvent {
  enum class Kind { reasoning, content, tool_call_begin, tool_call_arguments, tool_call_end };
  Kind kind;
  std::string text;    // the delta; for tool_call_begin the name of the function
  int call_index = 0;  // of tool-call events
  bool operator==(const OutputEvent&) const = default;
};

struct OutputOptions {
  bool starts_in_reasoning = false;  // see ends_inside_reasoning()
  bool starts_in_content = false;    // the text goes on with an answer that the prompt began
  bool parse_reasoning = true;       // false: tags stay in the content
  std::vector<Tool> tools;           // tool calls are looked for only when tools were declared
  ToolFormat format = ToolFormat::none;
  bool is_harmony = false;  // see detect_harmony()
  ThoughtMarkers thought;
};

// JSON types that a declared parameter accepts; empty when nothing is known about it.
using JsonTypes = std::set<std::string>;

class OutputParser {
 public:
  explicit OutputParser(const OutputOptions& options);

  // Appends the events that `piece` completes.
  void feed(std::string_view piece, std::vector<OutputEvent>& events);
  // The end of the generation: what was held back is decided now. A call without its close tag is ended where the model
  // stopped by itself; where it was cut off (`is_cut`) it gets no tool_call_end.
  void finish(std::vector<OutputEvent>& events, bool is_cut = true);

  bool is_harmony() const { return is_harmony_; }

 private:
  using Kind = OutputEvent::Kind;
  enum class State {
    start,  // nothing seen yet: a <think> may open
    reasoning,
    after_reasoning,  // newlines before the content are dropped
    content,
    call_open,  // after <tool_call>
    json_call,
    function_body,  // between the parameters
    value,          // inside a parameter
    after_function,
    bare_calls,  // from the first byte of what may be calls in the form of Llama or Mistral
    bare_call,   // inside the JSON of one
    bare_next,   // between two calls of an array
    after_bare,
    harmony_head,  // before <|message|>
    harmony_body,
  };
  // Of a call in JSON.
  enum class JsonPart {
    head,       // up to the arguments
    arguments,  // which go out
    rest,       // from their end to that of the call
    whole,      // nothing goes out before the call is complete
    end,
  };
  enum class JsonProgress { open, done, none };  // none: it was no call

  bool step(bool is_final);  // false: nothing more to do with the text at hand
  bool step_start(bool is_final);
  bool step_reasoning(bool is_final);
  bool step_content(bool is_final);

  bool step_call_open(bool is_final);  // output_parser_tags.cpp
  bool step_function_body(bool is_final);
  bool step_value(bool is_final);
  bool step_after_function(bool is_final);
  void begin_function(const std::string& name);
  void begin_value(std::string key);
  void stream_value(size_t n);
  void end_value(std::string_view raw);
  std::string argument_opening(const std::string& key);
  void end_call();
  void finish_function(bool is_cut);

  bool step_json_call();  // output_parser_json.cpp
  bool step_bare_calls(bool is_final);
  bool step_bare_call();
  bool step_bare_next();
  bool step_after_bare(bool is_final);
  void open_json(State state, std::string opening, std::string name, bool only_declared);
  JsonProgress read_json_call(size_t size, bool is_closed);
  JsonProgress read_whole_call(std::string_view json, bool is_closed);
  bool scan_to_close();
  void consume_json(size_t n);
  void finish_json_call(bool is_cut);

  bool step_harmony_head(bool is_final);  // output_parser_harmony.cpp
  bool step_harmony_body(bool is_final);

  std::string_view text() const { return std::string_view(buffer_).substr(pos_); }  // not consumed yet
  void consume(size_t n) { pos_ += n; }
  void skip_space();
  // Deltas with the whitespace at both ends of the channel held back.
  void emit(OutputEvent::Kind kind, std::string_view text);
  void emit_delta(OutputEvent::Kind kind, std::string_view text, bool is_last);
  void close_channel(OutputEvent::Kind kind);
  void begin_call(const std::string& name);
  void emit_arguments(std::string text);
  void emit_call_end();
  void call_was_content();  // what looked like a call was none

  bool has_bare_calls() const { return format_ == ToolFormat::llama3 || format_ == ToolFormat::mistral; }
  std::string_view call_marker() const;
  void open_call();
  void begin_bare();
  void begin_content();

  State state_;
  ToolFormat format_;
  bool is_harmony_;
  ThoughtMarkers thought_;
  bool parse_reasoning_;
  bool parse_tools_;
  std::map<std::string, std::map<std::string, JsonTypes>> tools_;  // name -> parameter -> types
  std::vector<OutputEvent>* events_ = nullptr;
  std::string buffer_;
  size_t pos_ = 0;
  std::string held_space_;  // whitespace that is dropped if nothing follows it in this channel
  std::string held_bytes_;  // the start of a UTF-8 character
  bool channel_started_ = false;
  size_t scan_ = 0;                                              // how far the current state has searched text()
  OutputEvent::Kind harmony_kind_ = OutputEvent::Kind::content;  // of the message that is read
  int call_index_ = -1;
  std::string function_;  // whose call is read

  // Of a call in tags.
  std::string key_;
  JsonTypes types_;
  bool is_repeated_ = false;  // the first value of a parameter stands
  bool is_text_ = false;      // the value goes out while it is written
  std::set<std::string> seen_keys_;

  // Of a call in JSON.
  std::string opening_;  // what was consumed before it, in case that it is none
  bool only_declared_ = false;
  bool in_array_ = false;
  bool is_alone_ = false;  // the JSON is the arguments and nothing else
  JsonPart part_ = JsonPart::head;
  JsonCopy copy_;
  JsonExtent extent_;
  bool in_string_ = false, after_backslash_ = false;  // of the search for the closing tag
};

// The whole text at once.
struct ParsedOutput {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> tool_calls;  // ids are the server's business
  bool has_incomplete_call = false;  // the last one was cut off
  bool operator==(const ParsedOutput&) const = default;
};
// Collects events as a server would.
void accumulate(const std::vector<OutputEvent>& events, ParsedOutput& output);
ParsedOutput parse_output(std::string_view text, const OutputOptions& options);

}  // namespace chimere::chat

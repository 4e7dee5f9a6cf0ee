// output_parser.h  Generated text -> reasoning, content and tool calls, while it streams.
//
// Tool calls are read in the model's dialect (dialects/dialect.h). What turns out to be none is content, as it was
// written. The result does not depend on how the text was cut into pieces. Whatever could still turn out to be the start
// of a marker is held back.
//
// Arguments come while they are written, and what has come is never taken back. In the form of tags a text goes out
// piece by piece and a value of another type when it is complete, because its type is known only then. In the forms of
// JSON everything goes out as soon as name and first bracket are there. Of a call that is cut off, what there was
// stays.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/dialects/dialect.h"
#include "chat/markers.h"
#include "chat/message.h"
#include "chat/output_text.h"

namespace chimere::chat {

struct OutputOptions {
  bool starts_in_reasoning = false;  // see ends_inside_reasoning()
  bool starts_in_content = false;    // the text goes on with an answer that the prompt began
  bool parse_reasoning = true;       // false: tags stay in the content
  std::vector<Tool> tools;           // tool calls are looked for only when tools were declared
  const Dialect* dialect = &default_dialect();
  ThoughtMarkers thought;
};

class OutputParser {
 public:
  explicit OutputParser(const OutputOptions& options);

  // Appends the events that `piece` completes.
  void feed(std::string_view piece, std::vector<OutputEvent>& events);
  // The end of the generation: what was held back is decided now. A call without its close tag is ended where the model
  // stopped by itself; where it was cut off (`is_cut`) it gets no tool_call_end.
  void finish(std::vector<OutputEvent>& events, bool is_cut = true);

  const Dialect& dialect() const { return *dialect_; }

 private:
  using Kind = OutputEvent::Kind;
  enum class State {
    start,  // nothing seen yet: a <think> may open
    reasoning,
    after_reasoning,  // newlines before the content are dropped
    content,
    calls,  // the dialect's reader has the word
  };

  bool step(bool is_final);  // false: nothing more to do with the text at hand
  bool step_start(bool is_final);
  bool step_reasoning(bool is_final);
  bool step_content(bool is_final);
  void begin_content();
  void open_calls();

  State state_;
  const Dialect* dialect_;
  ThoughtMarkers thought_;
  OutputText out_;
  CopiedReader reader_;
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

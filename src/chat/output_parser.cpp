// output_parser.cpp  Thoughts and content; calls are left to the dialect.
#include "chat/output_parser.h"

#include <algorithm>

#include "chat/text_scan.h"

namespace chimere::chat {

OutputParser::OutputParser(const OutputOptions& options)
    : state_(!options.parse_reasoning      ? State::content
             : options.starts_in_reasoning ? State::reasoning
             : options.dialect->is_framed  ? State::calls
             : options.starts_in_content   ? State::content
                                           : State::start),
      dialect_(options.dialect),
      thought_(options.thought),
      out_(options.tools),
      reader_(options.dialect->make_reader()) {
  if (state_ == State::calls) reader_->begin_frames(options.starts_in_content);
}

void OutputParser::feed(std::string_view piece, std::vector<OutputEvent>& events) {
  out_.feed(piece, events);
  while (step(false)) {
  }
  out_.drop_consumed();
}

void OutputParser::finish(std::vector<OutputEvent>& events, bool is_cut) {
  out_.feed({}, events);
  while (step(true)) {
  }
  CallReader::Rest rest = CallReader::Rest::none;
  if (state_ == State::calls) rest = reader_->finish(out_, is_cut);
  if (state_ == State::content) rest = CallReader::Rest::content;
  if (state_ == State::reasoning) rest = CallReader::Rest::reasoning;
  if (rest == CallReader::Rest::content) {
    out_.emit(Kind::content, out_.rest());
    out_.emit_held_space();
  }
  out_.close_channel(rest == CallReader::Rest::reasoning ? Kind::reasoning : Kind::content);
  out_.consume(out_.rest().size());
  out_.drop_consumed();
}

bool OutputParser::step(bool is_final) {
  switch (state_) {
    case State::start: return step_start(is_final);
    case State::reasoning: return step_reasoning(is_final);
    case State::after_reasoning: {
      out_.consume(std::min(out_.rest().find_first_not_of("\r\n"), out_.rest().size()));
      if (out_.rest().empty()) return false;
      begin_content();
      return true;
    }
    case State::content: return step_content(is_final);
    case State::calls: {
      const CallReader::Step step = reader_->step(out_, is_final);
      if (step == CallReader::Step::content) state_ = State::content;
      return step != CallReader::Step::wait;
    }
  }
  return false;
}

void OutputParser::begin_content() {
  if (out_.has_tools() && dialect_->may_lack_marker) return open_calls();
  state_ = State::content;
}

void OutputParser::open_calls() {
  reader_->open(out_);
  state_ = State::calls;
}

bool OutputParser::step_start(bool is_final) {
  const std::string_view rest = out_.rest().substr(count_space(out_.rest()));
  if (rest.starts_with(thought_.open)) {
    out_.consume(out_.rest().size() - rest.size() + thought_.open.size());
    state_ = State::reasoning;
    return true;
  }
  if (!is_final && is_prefix_of(rest, thought_.open)) return false;
  if (out_.rest().empty()) return false;
  begin_content();
  return true;
}

bool OutputParser::step_reasoning(bool is_final) {
  if (!out_.is_channel_open()) {
    // The prompt opened the block already, yet some models open it again.
    out_.skip_space();
    if (out_.rest().starts_with(thought_.open)) {
      out_.consume(thought_.open.size());
      return true;
    }
    if (!is_final && is_prefix_of(out_.rest(), thought_.open)) return false;
  }
  const std::string_view text = out_.rest();
  const size_t close = text.find(thought_.close);
  const CallPlace call = out_.has_tools() ? find_marker(text, dialect_->marker) : CallPlace{};
  const size_t end = std::min(close, call.at);
  if (end != std::string_view::npos) {
    out_.emit(Kind::reasoning, text.substr(0, end));
    out_.close_channel(Kind::reasoning);
    out_.consume(end);
    if (close < call.at) {
      out_.consume(thought_.close.size());
      state_ = State::after_reasoning;
    } else {
      open_calls();
    }
    return true;
  }
  const size_t held = is_final ? 0 : std::max(held_suffix(text, thought_.close), call.held);
  out_.emit(Kind::reasoning, text.substr(0, text.size() - held));
  out_.consume(text.size() - held);
  return false;
}

bool OutputParser::step_content(bool is_final) {
  const std::string_view text = out_.rest();
  const CallPlace call = out_.has_tools() ? reader_->find(out_) : CallPlace{};
  const bool is_found = call.at != std::string_view::npos;
  const size_t end = is_found ? call.at : text.size() - (is_final ? 0 : call.held);
  out_.emit(Kind::content, text.substr(0, end));
  if (is_found) out_.close_channel(Kind::content);
  out_.consume(end);
  if (is_found) open_calls();
  return is_found;
}

void accumulate(const std::vector<OutputEvent>& events, ParsedOutput& output) {
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case OutputEvent::Kind::reasoning: output.reasoning += event.text; break;
      case OutputEvent::Kind::content: output.content += event.text; break;
      case OutputEvent::Kind::tool_call_begin:
        output.tool_calls.push_back(ToolCall{"", event.text, ""});
        output.has_incomplete_call = true;
        break;
      case OutputEvent::Kind::tool_call_arguments: output.tool_calls.back().arguments_json += event.text; break;
      case OutputEvent::Kind::tool_call_end: output.has_incomplete_call = false; break;
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
  return output;
}

}  // namespace chimere::chat

// tagged_calls.h  Calls between <tool_call> and </tool_call>, written as JSON (hermes.cpp) or as tags (qwen_xml.cpp).
// Models mix the two, so one reader takes both.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "chat/dialects/dialect.h"
#include "chat/json_call.h"
#include "chat/markers.h"

namespace chimere::chat {

inline constexpr std::string_view kTaggedCallWords[] = {kToolCallOpen, kToolCallClose};

class TaggedCalls : public CallReader {
 public:
  std::unique_ptr<CallReader> clone() const override { return std::make_unique<TaggedCalls>(*this); }
  // A call whose opening tag the model left out counts too, if it is written in tags and names a tool.
  CallPlace find(const OutputText& out) const override;
  void open(OutputText& out) override;
  Step step(OutputText& out, bool is_final) override;
  Rest finish(OutputText& out, bool is_cut) override;

 private:
  enum class State {
    opened,  // behind <tool_call>
    json,
    body,   // of a function, between its parameters
    value,  // of a parameter
    behind,
  };

  Step step_opened(OutputText& out, bool is_final);
  Step step_json(OutputText& out);
  Step step_body(OutputText& out, bool is_final);
  Step step_value(OutputText& out, bool is_final);
  Step step_behind(OutputText& out, bool is_final);

  bool scan_to_close(std::string_view text);
  Step was_content(OutputText& out);

  void begin_function(OutputText& out, const std::string& name);
  void begin_value(OutputText& out, std::string key);
  void stream_value(OutputText& out, size_t n);
  void end_value(OutputText& out, std::string_view raw);
  std::string argument_opening();
  void end_function(OutputText& out);
  void finish_function(OutputText& out, bool is_cut);

  State state_ = State::behind;
  std::string function_;  // whose call is read
  size_t scan_ = 0;       // how far the current state has searched the text

  // Of a call in JSON: the search for the closing tag.
  JsonCallReader call_;
  bool in_string_ = false, after_backslash_ = false;

  // Of a call in tags.
  std::string key_;
  JsonTypes types_;
  bool is_repeated_ = false;  // the first value of a parameter stands
  bool is_text_ = false;      // the value goes out while it is written
  std::set<std::string> seen_keys_;
};

inline std::unique_ptr<CallReader> make_tagged_reader() { return std::make_unique<TaggedCalls>(); }

}  // namespace chimere::chat

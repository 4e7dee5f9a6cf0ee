// bare_calls.h  Calls whose JSON no closing tag follows: its brackets alone say where it ends (llama.cpp, mistral.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "chat/dialects/dialect.h"
#include "chat/json_call.h"

namespace chimere::chat {

// Behind the blanks that begin at `at`.
inline size_t skip_blank(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(" \n\t\r", at), text.size());
}

// What stands before the JSON of calls.
struct BareHead {
  enum class Kind { incomplete, none, found };
  Kind kind = Kind::none;
  std::string name = {};  // of a call whose JSON is its arguments alone
  size_t json_begin = 0;  // the first bracket
};

struct BareForm {
  std::string_view marker;
  bool may_lack_marker;
  // Where no bracket follows the marker; `at` is behind it. Null: then it is no call.
  BareHead (*read_name)(std::string_view text, size_t at);
};

class BareCalls : public CallReader {
 public:
  explicit BareCalls(const BareForm& form) : form_(form) {}
  std::unique_ptr<CallReader> clone() const override { return std::make_unique<BareCalls>(*this); }
  CallPlace find(const OutputText& out) const override { return find_marker(out.rest(), form_.marker); }
  void open(OutputText&) override { state_ = State::head; }
  Step step(OutputText& out, bool is_final) override;
  Rest finish(OutputText& out, bool is_cut) override;

 private:
  enum class State {
    head,    // at the first byte of what may be calls
    call,    // inside the JSON of one
    next,    // between two calls of an array
    behind,  // all of them
  };

  Step step_head(OutputText& out, bool is_final);
  Step step_call(OutputText& out);
  Step step_next(OutputText& out);
  Step step_behind(OutputText& out, bool is_final);
  BareHead read_head(std::string_view text) const;
  Step was_content(OutputText& out);

  BareForm form_;
  State state_ = State::head;
  std::string opening_;  // what was consumed before the JSON, in case that it is no call
  bool only_declared_ = false;
  bool in_array_ = false;
  JsonCallReader call_;
};

}  // namespace chimere::chat

// chat_screen.h  What a conversation shows. The answer goes to standard output, as it is where that is no terminal;
// everything else (thoughts, figures, hints) goes to standard error, and only where that is one.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "terminal/word_wrap.h"

namespace chimere::apps {

class ChatScreen {
 public:
  explicit ChatScreen(bool shows_thoughts);

  void show_thoughts(bool on) { shows_thoughts_ = on; }
  bool shows_thoughts() const { return shows_thoughts_; }
  bool has_colours() const { return colours_; }

  // Pieces of one answer, then its end.
  void thought(std::string_view text);
  void answer(std::string_view text);
  void end_answer();

  // A line for the person, dimmed.
  void note(const std::string& line) const;
  // What a person has to know of what was asked: the same, and a plain line where standard error is no terminal.
  void warn(const std::string& line) const;
  // Text that a command asked for.
  void tell(const std::string& text) const;
  // "chimere: message"; also where standard error is no terminal.
  void error(const std::string& message) const;

 private:
  enum class Part { none, thought, answer };
  void begin(Part part);
  void write(std::string_view text, bool to_terminal, FILE* file);

  const bool answers_on_terminal_, notes_on_terminal_, colours_;
  bool shows_thoughts_;
  Part part_ = Part::none;
  bool ends_with_newline_ = true;
  WordWrap wrap_;
};

}  // namespace chimere::apps

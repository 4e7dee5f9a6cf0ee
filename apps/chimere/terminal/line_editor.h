// line_editor.h  Text typed at a terminal: a line editor (libedit) whose "line" may have several lines.
//
//   Enter          the text is done; behind a backslash a new line begins instead
//   Alt-Enter      a new line
//   a paste        is text, whatever line ends are in it (bracketed paste)
//   Up, Down       between the lines of the text, and from its first and last one into the history
//   Ctrl-R         searches the history
//
// While nothing is read, the terminal is as it was.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "terminal/input_history.h"

namespace chimere::apps {

class LineEditor {
 public:
  enum class Outcome { text, interrupted, end };

  // Standard input and `screen` are terminals. `history` outlives the editor.
  LineEditor(FILE* screen, InputHistory& history, bool colours);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Ctrl-C gives `interrupted`, Ctrl-D without text and the end of the input `end`. `draft` stands there to be changed.
  Outcome read(std::string& text, const std::string& draft = {});

  struct State;  // of line_editor.cpp

 private:
  std::unique_ptr<State> state_;
};

}  // namespace chimere::apps

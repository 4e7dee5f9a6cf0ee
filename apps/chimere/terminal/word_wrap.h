// word_wrap.h  Text that comes in pieces, laid out for a screen: words are not cut at its edge.
//
// Nothing is held back: a word that turns out not to fit is taken from the end of its line and written again on the
// next one. Lines of code (between ``` or ~~~) and words longer than a line are left to the terminal, so that they can
// be copied whole. Widths are those of terminals: two cells for Chinese and emoji, none for combining marks.
#pragma once

#include <string>
#include <string_view>

namespace chimere::apps {

class WordWrap {
 public:
  // `columns` of the screen; 0: text passes as it is.
  explicit WordWrap(int columns = 0) : columns_(columns) {}

  // What to write to the screen for this text: whole UTF-8 characters, no control characters but \n and \t.
  std::string push(std::string_view text);
  // Cells of the line that are taken.
  int column() const { return column_; }

 private:
  void put(std::string_view character, int cells, std::string& out);
  void put_space(int cells, std::string& out);
  void end_line(std::string& out);
  bool is_code() const { return in_code_ || fence_marks_ >= 3; }

  int columns_;
  int column_ = 0;
  std::string word_;  // since the last place where the line may be broken
  int word_cells_ = 0;
  bool in_code_ = false;
  bool at_indent_ = true;  // only spaces so far
  char fence_mark_ = 0;    // of the line's beginning: ` or ~, or 0
  int fence_marks_ = 0;
  bool after_marks_ = false;  // the line has more than those
};

// Text of a model or a file, for a terminal: control characters, which could steer it, become visible signs; stray
// bytes become U+FFFD. Line feeds and tabs stay.
std::string harmless(std::string_view text);

}  // namespace chimere::apps

#include "terminal/word_wrap.h"

#include <utf8proc.h>

#include "tokenizer/unicode.h"

namespace chimere::apps {

using tokenizer::Char;
using tokenizer::char_at;

std::string WordWrap::push(std::string_view text) {
  if (columns_ <= 0) return std::string(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    const std::string_view character = text.substr(at, c.len);
    at += c.len;
    if (c.code == '\n') {
      end_line(out);
      continue;
    }
    if (at_indent_ && c.code != ' ') {
      at_indent_ = false;
      fence_mark_ = c.code == '`' || c.code == '~' ? static_cast<char>(c.code) : '\0';
    }
    const bool is_mark = fence_mark_ != 0 && c.code == static_cast<char32_t>(fence_mark_);
    if (is_mark && !after_marks_) ++fence_marks_;
    if (!is_mark && fence_marks_ < 3) fence_mark_ = 0;
    if (is_mark && after_marks_ && fence_mark_ == '`') fence_marks_ = fence_mark_ = 0;  // ```code``` inside a line
    after_marks_ = after_marks_ || (!is_mark && fence_marks_ > 0);
    if (is_code()) {
      out += character;
    } else if (c.code == ' ') {
      put_space(1, out);
    } else if (c.code == '\t') {
      put_space(8 - column_ % 8, out);
    } else {
      put(character, c.code == kInvalidChar ? 1 : utf8proc_charwidth(static_cast<utf8proc_int32_t>(c.code)), out);
    }
  }
  return out;
}

void WordWrap::end_line(std::string& out) {
  if (fence_marks_ >= 3) in_code_ = !in_code_;
  out += '\n';
  column_ = word_cells_ = fence_marks_ = 0;
  fence_mark_ = 0;
  word_.clear();
  at_indent_ = true;
  after_marks_ = false;
}

void WordWrap::put_space(int cells, std::string& out) {
  word_.clear();
  word_cells_ = 0;
  if (column_ == 0 && !at_indent_) return;  // the line was broken here, its space is spent
  if (column_ + cells >= columns_) {
    out += '\n';
    column_ = 0;
    return;
  }
  out.append(static_cast<size_t>(cells), ' ');
  column_ += cells;
}

// The last column stays empty: behind it terminals differ in where the cursor is.
void WordWrap::put(std::string_view character, int cells, std::string& out) {
  if (cells == 2) {  // may stand at the beginning of any line, and so may what follows
    word_.clear();
    word_cells_ = 0;
  }
  if (column_ + cells >= columns_) {
    const bool moves = word_cells_ < column_ && word_cells_ + cells < columns_;
    if (moves) {
      if (word_cells_ > 0) out += "\033[" + std::to_string(word_cells_) + "D\033[K";
      out += "\n" + word_;
      column_ = word_cells_;
    } else if (column_ + cells > columns_) {
      column_ = 0;  // the terminal goes on in the next line by itself
    }
  }
  out += character;
  column_ += cells;
  if (cells == 2) return;
  word_ += character;
  word_cells_ += cells;
}

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (c.code == kInvalidChar) {
      out += "\uFFFD";
    } else if (c.code == '\r') {
      // The other half of a line end; alone it would let what follows be written over the line.
    } else if (c.code < 0x20 && c.code != '\n' && c.code != '\t') {
      append_utf8(0x2400 + c.code, out);  // U+241B is the sign for Escape, and so on
    } else if (c.code == 0x7F) {
      out += "\u2421";
    } else if (c.code >= 0x80 && c.code < 0xA0) {
      out += "\uFFFD";  // the same commands as Escape sequences, in one character
    } else {
      out += text.substr(at, c.len);
    }
    at += c.len;
  }
  return out;
}

}  // namespace chimere::apps

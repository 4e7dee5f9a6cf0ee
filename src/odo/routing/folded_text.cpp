#include "odo/routing/folded_text.h"

#include <utf8proc.h>

#include "text/utf8.h"
#include "tokenizer/unicode.h"

namespace chimere::odo {
namespace {

using tokenizer::Char;
using tokenizer::char_at;

// At the beginning of a character.
size_t whole_chars(std::string_view text, size_t at) {
  while (at < text.size() && is_continuation(text[at])) ++at;
  return at;
}

std::string_view plain_quote(char32_t code) {
  return code == 0x2019 || code == 0x02BC ? "'" : code == 0x0153 ? "oe" : code == 0x00E6 ? "ae" : "";
}

void fold(std::string_view text, std::string& out) {
  const std::string apart = tokenizer::to_nfd(std::string(text));
  for (size_t at = 0; at < apart.size();) {
    const Char c = char_at(apart, at);
    at += c.len;
    if (c.classes & tokenizer::kMark) continue;
    if ((c.classes & tokenizer::kSpace) || c.code == kInvalidChar) {
      if (out.back() != ' ') out += ' ';
      continue;
    }
    const auto small = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code)));
    if (const std::string_view plain = plain_quote(small); !plain.empty()) {
      out += plain;
    } else {
      append_utf8(small, out);
    }
  }
  if (out.back() != ' ') out += ' ';
}

}  // namespace

FoldedText::FoldedText(std::string_view text) : text_(" ") {
  if (text.size() <= kMaxFoldedBytes) {
    fold(text, text_);
    return;
  }
  fold(text.substr(0, whole_chars(text, kMaxFoldedBytes / 2)), text_);
  fold(text.substr(whole_chars(text, text.size() - kMaxFoldedBytes / 2)), text_);
}

std::vector<std::string_view> FoldedText::words() const {
  constexpr uint16_t kInWord = tokenizer::kLetter | tokenizer::kNumber;
  const std::string_view text = text_;
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size()) {
      const Char c = char_at(text, end);
      if (!(c.classes & kInWord)) break;
      end += c.len;
    }
    if (end == at) {
      at += char_at(text, at).len;
      continue;
    }
    while (end < text.size() && (text[end] == '+' || text[end] == '#')) ++end;
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace chimere::odo

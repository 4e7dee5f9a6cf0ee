// scanners.cpp  The alternatives of each expression, tried in order, with its backtracking worked out by hand.
//
// All are linear over a whole text: an alternative that looks far ahead and fails is followed by one that takes what
// was looked at (a run of spaces, a run of capitals).
#include "tokenizer/scanners.h"

#include <cstdint>
#include <limits>

#include "tokenizer/cased_letters.h"
#include "tokenizer/unicode.h"

namespace chimere::tokenizer {
namespace {

// Runs to the first character for which `is` fails, or after `max` characters.
template <class Is>
size_t run_end(std::string_view text, size_t pos, Is is, size_t max = std::numeric_limits<size_t>::max()) {
  for (; pos < text.size() && max > 0; --max) {
    const Char c = char_at(text, pos);
    if (!is(c)) break;
    pos += c.len;
  }
  return pos;
}

auto any_of(unsigned classes) {
  return [classes](const Char& c) { return (c.classes & classes) != 0; };
}
auto none_of(unsigned classes) {
  return [classes](const Char& c) { return (c.classes & classes) == 0; };
}

uint16_t classes_at(std::string_view text, size_t pos) { return pos < text.size() ? char_at(text, pos).classes : 0; }

size_t contraction_end(std::string_view text, size_t pos, bool any_case) {
  if (text.size() - pos < 2 || text[pos] != '\'') return pos;
  const auto letter = [&](size_t i) {
    if (i >= text.size()) return '\0';
    const char c = text[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  switch (letter(pos + 1)) {
    case 's':
    case 't':
    case 'm':
    case 'd': return pos + 2;
    case 'r':
    case 'v': return letter(pos + 2) == 'e' ? pos + 3 : pos;
    case 'l': return letter(pos + 2) == 'l' ? pos + 3 : pos;
    default: return pos;
  }
}

// [\s]*[\r\n]+ (when `lines`) | \s+(?!\S) | \s+     REQUIRES: a space at pos.
size_t spaces_end(std::string_view text, size_t pos, bool lines) {
  size_t last = pos;           // start of the run's last character
  size_t after_newline = pos;  // behind the run's last \r or \n
  size_t end = pos;
  while (end < text.size()) {
    const Char c = char_at(text, end);
    if ((c.classes & kSpace) == 0) break;
    last = end;
    end += c.len;
    if ((c.classes & kNewline) != 0) after_newline = end;
  }
  if (lines && after_newline > pos) return after_newline;
  // Before other text the last space is left to it, unless it is the only one.
  return end < text.size() && last > pos ? last : end;
}

// ` ?[^\s CLASSES]+`, or pos.
size_t other_end(std::string_view text, size_t pos, unsigned excluded) {
  const size_t from = text[pos] == ' ' ? pos + 1 : pos;
  const size_t end = run_end(text, from, none_of(excluded | kSpace));
  return end > from ? end : pos;
}

// `\s?[CLASS]+`, or pos.
template <class Is>
size_t spaced_run_end(std::string_view text, size_t pos, Is is) {
  const Char c = char_at(text, pos);
  if ((c.classes & kSpace) != 0) {
    if (const size_t end = run_end(text, pos + c.len, is); end > pos + c.len) return end;
  }
  return run_end(text, pos, is);
}

// The character that ends at `pos`. REQUIRES: pos > 0.
Char char_before(std::string_view text, size_t pos) {
  for (size_t back = 2; back <= 4 && back <= pos; ++back) {
    const Char c = char_at(text, pos - back);
    if (c.len == back) return c;
  }
  return char_at(text, pos - 1);
}

size_t newlines_end(std::string_view text, size_t pos, bool slashes) {
  while (pos < text.size() && (text[pos] == '\r' || text[pos] == '\n' || (slashes && text[pos] == '/'))) ++pos;
  return pos;
}

size_t llama_style(std::string_view text, size_t pos, unsigned word, unsigned max_digits) {
  if (const size_t end = contraction_end(text, pos, true); end > pos) return end;
  const Char c = char_at(text, pos);
  // A mark that could be the optional first character or the first of the word gives the same match either way.
  if ((c.classes & word) != 0) return run_end(text, pos, any_of(word));
  if ((c.classes & kNumber) != 0) return run_end(text, pos, any_of(kNumber), max_digits);
  if ((c.classes & kNewline) == 0 && (classes_at(text, pos + c.len) & word) != 0) {
    return run_end(text, pos + c.len, any_of(word));
  }
  if (const size_t end = other_end(text, pos, word | kNumber); end > pos) return newlines_end(text, end, false);
  return spaces_end(text, pos, true);
}

constexpr unsigned kWordHead = kUpper | kOtherLetter | kMark;  // U of the header
constexpr unsigned kWordTail = kLower | kOtherLetter | kMark;  // W

// U*W+ from `pos`, or pos. U* is greedy; when nothing in W follows it gives characters back to the last one in W.
size_t head_tail_end(std::string_view text, size_t pos) {
  size_t head = pos;
  size_t last_tail_end = pos;  // behind the last character of the U run that is in W as well
  while (head < text.size()) {
    const Char c = char_at(text, head);
    if ((c.classes & kWordHead) == 0) break;
    head += c.len;
    if ((c.classes & kWordTail) != 0) last_tail_end = head;
  }
  const size_t end = run_end(text, head, any_of(kWordTail));
  return end > head ? end : last_tail_end;
}

// The two word alternatives of GPT4O and TEKKEN, without the contraction, or pos.
size_t cased_word_end(std::string_view text, size_t pos) {
  const Char c = char_at(text, pos);
  const bool may_prefix = (c.classes & (kLetter | kNumber | kNewline)) == 0;
  const size_t after = pos + c.len;
  if (may_prefix) {
    if (const size_t end = head_tail_end(text, after); end > after) return end;
  }
  if (const size_t end = head_tail_end(text, pos); end > pos) return end;
  const size_t from = may_prefix ? after : pos;
  const size_t end = run_end(text, from, any_of(kWordHead));
  return end > from ? end : pos;
}

size_t gpt4o_style(std::string_view text, size_t pos, bool contractions, unsigned max_digits) {
  if (const size_t end = cased_word_end(text, pos); end > pos) {
    return contractions && end < text.size() ? contraction_end(text, end, true) : end;
  }
  if ((char_at(text, pos).classes & kNumber) != 0) return run_end(text, pos, any_of(kNumber), max_digits);
  if (const size_t end = other_end(text, pos, kLetter | kNumber); end > pos) return newlines_end(text, end, true);
  return spaces_end(text, pos, true);
}

bool is_ascii_letter(const Char& c) { return c.code < 0x80 && (c.classes & kLetter) != 0; }

size_t punctuation_end(std::string_view text, size_t pos, bool backtick) {
  return run_end(text, pos, [backtick](const Char& c) {
    return (c.classes & kPunctuation) != 0 ||
           (c.code < 0x80 && (c.classes & kSymbol) != 0 && (c.code != '`' || backtick));
  });
}

}  // namespace

size_t scan_qwen35(std::string_view text, size_t pos) { return llama_style(text, pos, kLetter | kMark, 1); }
size_t scan_qwen2(std::string_view text, size_t pos) { return llama_style(text, pos, kLetter, 1); }
size_t scan_llama3(std::string_view text, size_t pos) { return llama_style(text, pos, kLetter, 3); }
size_t scan_gpt4o(std::string_view text, size_t pos) { return gpt4o_style(text, pos, true, 3); }
size_t scan_tekken(std::string_view text, size_t pos) { return gpt4o_style(text, pos, false, 1); }

size_t scan_gpt2(std::string_view text, size_t pos) {
  if (const size_t end = contraction_end(text, pos, false); end > pos) return end;
  const size_t from = text[pos] == ' ' ? pos + 1 : pos;
  const uint16_t classes = classes_at(text, from);
  if ((classes & kLetter) != 0) return run_end(text, from, any_of(kLetter));
  if ((classes & kNumber) != 0) return run_end(text, from, any_of(kNumber));
  if (const size_t end = other_end(text, pos, kLetter | kNumber); end > pos) return end;
  return spaces_end(text, pos, false);
}

size_t scan_deepseek3(std::string_view text, size_t pos) {
  constexpr unsigned kWord = kLetter | kMark;
  constexpr unsigned kSign = kPunctuation | kSymbol;
  const Char c = char_at(text, pos);
  if (c.code < 0x80 && (c.classes & kSign) != 0) {
    if (const size_t end = run_end(text, pos + 1, is_ascii_letter); end > pos + 1) return end;
  }
  if ((c.classes & kWord) != 0) return run_end(text, pos, any_of(kWord));
  if ((c.classes & (kNewline | kSign)) == 0 && (classes_at(text, pos + c.len) & kWord) != 0) {
    return run_end(text, pos + c.len, any_of(kWord));
  }
  const size_t from = c.code == ' ' ? pos + 1 : pos;
  if (const size_t end = run_end(text, from, any_of(kSign)); end > from) return newlines_end(text, end, false);
  return (c.classes & kSpace) != 0 ? spaces_end(text, pos, true) : pos;
}

size_t scan_number(std::string_view text, size_t pos) { return run_end(text, pos, any_of(kNumber), 1); }
size_t scan_numbers(std::string_view text, size_t pos) { return run_end(text, pos, any_of(kNumber)); }
size_t scan_three_numbers(std::string_view text, size_t pos) { return run_end(text, pos, any_of(kNumber), 3); }

size_t scan_three_ascii_digits(std::string_view text, size_t pos) {
  const size_t end = run_end(
      text, pos, [](const Char& c) { return c.code >= '0' && c.code <= '9'; }, 3);
  return end == pos + 3 ? end : pos;
}

size_t scan_han_kana(std::string_view text, size_t pos) {
  return run_end(text, pos, [](const Char& c) {
    return (c.code >= 0x4E00 && c.code <= 0x9FA5) || (c.code >= 0x3040 && c.code <= 0x30FF);
  });
}

size_t scan_asian(std::string_view text, size_t pos) {
  return run_end(text, pos, [](const Char& c) {
    return (c.code >= 0x0800 && c.code <= 0x9FA5) || (c.code >= 0xAC00 && c.code <= 0xD7FF);
  });
}

size_t scan_newline(std::string_view text, size_t pos) { return run_end(text, pos, any_of(kNewline), 1); }
size_t scan_letters(std::string_view text, size_t pos) { return spaced_run_end(text, pos, any_of(kLetter)); }
size_t scan_punctuation(std::string_view text, size_t pos) { return spaced_run_end(text, pos, any_of(kPunctuation)); }

size_t scan_cased_letters(std::string_view text, size_t pos) {
  return spaced_run_end(text, pos, [](const Char& c) { return is_cased_letter(c.code); });
}

size_t scan_wide_punctuation(std::string_view text, size_t pos) {
  return spaced_run_end(text, pos, [](const Char& c) {
    const auto within = [&](char32_t first, char32_t last) { return c.code >= first && c.code <= last; };
    return within('!', '/') || within(':', '~') || within(0xFF01, 0xFF0F) || within(0xFF1A, 0xFF5E) ||
           within(0x2018, 0x201F) || within(0x3000, 0x3002);
  });
}

size_t scan_last_spaces(std::string_view text, size_t pos) {
  // A run that does not reach the end fails from each of its characters, so only the first one looks.
  if (pos > 0 && (char_before(text, pos).classes & kSpace) != 0) return pos;
  const size_t end = run_end(text, pos, any_of(kSpace));
  return end == text.size() ? end : pos;
}

size_t scan_falcon_punctuation(std::string_view text, size_t pos) { return punctuation_end(text, pos, true); }
size_t scan_plain_punctuation(std::string_view text, size_t pos) { return punctuation_end(text, pos, false); }

}  // namespace chimere::tokenizer

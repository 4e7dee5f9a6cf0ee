// wordpiece.cpp  Cleaning, splitting and greedy matching.
#include "tokenizer/wordpiece.h"

#include <utf8proc.h>

#include <algorithm>
#include <string>

#include "tokenizer/unicode.h"

namespace chimere::tokenizer {
namespace {

constexpr size_t kMaxWordChars = 100;  // a longer word is unknown as a whole

utf8proc_category_t category_of(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

bool is_dropped(const Char& c) {
  if (c.code == kInvalidChar || c.code == 0 || c.code == 0xFFFD) return true;
  if ((c.classes & kSpace) != 0) return false;
  const auto category = category_of(c.code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_han(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_word_of_its_own(const Char& c) {
  return (c.classes & kPunctuation) != 0 || (c.code < 0x80 && (c.classes & kSymbol) != 0);
}

}  // namespace

Result<WordPiece> WordPiece::from_metadata(const gguf::Metadata& metadata, const Vocab& vocab) {
  WordPiece result;
  TRY_ASSIGN(result.lowercase_, metadata.get_bool_or("tokenizer.ggml.normalizer.lowercase", true));
  TRY_ASSIGN(result.strip_accents_, metadata.get_bool_or("tokenizer.ggml.normalizer.strip_accents", result.lowercase_));
  result.unk_ = vocab.ids.unk;
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string_view text = vocab.text(id);
    if (vocab.types[id] != TokenType::normal || text.empty()) continue;
    result.longest_ = std::max(result.longest_, text.size());
    if (result.texts_.intern(text) == static_cast<int32_t>(result.tokens_.size())) result.tokens_.push_back(id);
  }
  return Result<WordPiece>{std::move(result)};
}

int32_t WordPiece::find(std::string_view bytes) const {
  const int32_t number = texts_.find(bytes);
  return number < 0 ? -1 : tokens_[number];
}

void WordPiece::encode(std::string_view text, std::vector<int32_t>& out) const {
  std::string clean;
  clean.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const Char c = char_at(text, pos);
    if ((c.classes & kSpace) != 0) {
      clean += ' ';
    } else if (!is_dropped(c)) {
      if (is_han(c.code)) clean += ' ';
      clean += text.substr(pos, c.len);
      if (is_han(c.code)) clean += ' ';
    }
    pos += c.len;
  }
  if (strip_accents_) clean = to_nfd(clean);

  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) encode_word(word, out);
    word.clear();
  };
  for (size_t pos = 0; pos < clean.size();) {
    const Char c = char_at(clean, pos);
    pos += c.len;
    if (strip_accents_ && category_of(c.code) == UTF8PROC_CATEGORY_MN) continue;
    if ((c.classes & kSpace) != 0) {
      end_word();
    } else if (is_word_of_its_own(c)) {
      end_word();
      append_utf8(c.code, word);
      end_word();
    } else if (lowercase_ && c.code == 0x130) {
      word += "i\xCC\x87";  // the one capital whose small form is two characters
    } else {
      append_utf8(lowercase_ ? static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code))) : c.code,
                  word);
    }
  }
  end_word();
}

void WordPiece::encode_word(std::string_view word, std::vector<int32_t>& out) const {
  const size_t before = out.size();
  const auto unknown = [&] {
    out.resize(before);
    if (unk_ >= 0) out.push_back(unk_);
  };
  if (static_cast<size_t>(std::count_if(word.begin(), word.end(), [](char c) { return !is_continuation(c); })) >
      kMaxWordChars) {
    unknown();
    return;
  }
  std::string spaced(1, ' ');
  spaced += word;
  const std::string_view whole = spaced;
  for (size_t pos = 0; pos < whole.size();) {
    size_t end = std::min(whole.size(), pos + longest_);
    int32_t token = -1;
    // The space alone is the mark of a word's start, not a piece of it.
    const size_t least = pos == 0 ? 2 : pos + 1;
    for (; end >= least; --end) {
      if (end < whole.size() && is_continuation(whole[end])) continue;
      token = find(whole.substr(pos, end - pos));
      if (token >= 0) break;
    }
    if (token < 0) {
      unknown();
      return;
    }
    out.push_back(token);
    pos = end;
  }
}

}  // namespace chimere::tokenizer

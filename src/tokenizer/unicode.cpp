// unicode.cpp  Character classes and normal forms on top of utf8proc's tables.
#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace chimere::tokenizer {
namespace {

// REQUIRES: code is not ASCII.
uint16_t classes_of(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return kUpper;
    case UTF8PROC_CATEGORY_LL: return kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return kOtherLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return kSymbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return kSpace;
    default: break;
  }
  return code == 0x85 ? kSpace : 0;  // "next line" is the one control beyond ASCII with the White_Space property
}

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

// Normalises one stretch of valid UTF-8. utf8proc's own mark ordering exchanges neighbours, which is quadratic on a
// hostile run of marks; sorting each run is not.
void append_normal_form(std::string_view valid, bool compose, std::string& out) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(valid.size());
  for (size_t pos = 0; pos < valid.size();) {
    const Char c = char_at(valid, pos);
    pos += c.len;
    std::array<utf8proc_int32_t, 32> parts;
    int boundclass = 0;
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code), parts.data(), parts.size(),
                                static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundclass);
    if (n > 0 && n <= static_cast<utf8proc_ssize_t>(parts.size())) {
      codes.insert(codes.end(), parts.begin(), parts.begin() + n);
    } else {
      codes.push_back(static_cast<utf8proc_int32_t>(c.code));
    }
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    if (combining_class(codes[i]) == 0) continue;
    size_t end = i + 1;
    while (end < codes.size() && combining_class(codes[end]) != 0) ++end;
    if (end - i > 1) {
      std::stable_sort(codes.begin() + i, codes.begin() + end,
                       [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    }
    i = end;
  }
  size_t n_codes = codes.size();
  if (compose) {
    const utf8proc_ssize_t n =
        utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (n >= 0) n_codes = static_cast<size_t>(n);
  }
  for (size_t i = 0; i < n_codes; ++i) append_utf8(static_cast<char32_t>(codes[i]), out);
}

std::string normalise(std::string_view text, bool compose) {
  std::string out;
  out.reserve(text.size());
  size_t valid_from = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t len = utf8_length(text, pos);
    if (len > 0) {
      pos += len;
      continue;
    }
    append_normal_form(text.substr(valid_from, pos - valid_from), compose, out);
    out += text[pos++];
    valid_from = pos;
  }
  append_normal_form(text.substr(valid_from), compose, out);
  return out;
}

}  // namespace

Char decode_wide_char(std::string_view text, size_t pos) {
  const CodePoint c = decode_at(text, pos);
  if (c.value == kInvalidChar) return {kInvalidChar, 0, 1};
  return {c.value, classes_of(c.value), static_cast<uint8_t>(c.n_bytes)};
}

bool may_change_under_nfc(std::string_view text) {
  // Everything below U+0300 (lead byte 0xCC) is its own composed form and composes with nothing before it.
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) >= 0xCC; });
}

std::string to_nfc(std::string_view text) { return normalise(text, true); }

std::string to_nfd(std::string_view text) { return normalise(text, false); }

}  // namespace chimere::tokenizer

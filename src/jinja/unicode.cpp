// unicode.cpp  Character properties on top of utf8proc.
#include "jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "jinja/case_table.h"

namespace chimere::jinja {
namespace {

utf8proc_int32_t code_of(char32_t c) { return static_cast<utf8proc_int32_t>(c); }

// Of kInvalidChar, which utf8proc sees as -1: none (Cn).
utf8proc_category_t category(char32_t c) { return utf8proc_category(code_of(c)); }

const LongCase* long_case(char32_t c) {
  const auto* end = std::end(kLongCases);
  const auto* it =
      std::lower_bound(std::begin(kLongCases), end, c, [](const LongCase& l, char32_t v) { return l.code_point < v; });
  return it != end && it->code_point == c ? it : nullptr;
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

// Word_Break MidLetter and friends, marks and modifiers: what the final sigma rule skips over.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return c == 0x27 || c == 0x2e || c == 0x3a || c == 0xb7 || c == 0x2018 || c == 0x2019 || c == 0x2024;
  }
}

bool sigma_is_final(std::string_view s, size_t pos) {
  size_t i = pos;
  bool cased_before = false;
  while (i > 0) {
    do {
      --i;
    } while (i > 0 && is_continuation(s[i]));
    const char32_t c = decode_at(s, i).value;
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  for (i = pos + 2; i < s.size();) {
    const CodePoint c = decode_at(s, i);
    if (!is_case_ignorable(c.value)) return !is_cased(c.value);
    i += c.n_bytes;
  }
  return true;
}

}  // namespace

size_t count_code_points(std::string_view s) {
  size_t n = 0;
  for (size_t i = 0; i < s.size(); ++n) i += decode_at(s, i).n_bytes;
  return n;
}

std::vector<size_t> code_point_offsets(std::string_view s) {
  std::vector<size_t> offsets;
  offsets.reserve(s.size() + 1);
  for (size_t i = 0; i < s.size(); i += decode_at(s, i).n_bytes) offsets.push_back(i);
  offsets.push_back(s.size());
  return offsets;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
  if (c == 0x85) return true;
  const auto cat = category(c);
  return cat == UTF8PROC_CATEGORY_ZS || cat == UTF8PROC_CATEGORY_ZL || cat == UTF8PROC_CATEGORY_ZP;
}

bool is_alpha(char32_t c) {
  const auto cat = category(c);
  return cat == UTF8PROC_CATEGORY_LU || cat == UTF8PROC_CATEGORY_LL || cat == UTF8PROC_CATEGORY_LT ||
         cat == UTF8PROC_CATEGORY_LM || cat == UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2776 && c <= 0x277e);
}

bool is_numeric(char32_t c) {
  const auto cat = category(c);
  return cat == UTF8PROC_CATEGORY_ND || cat == UTF8PROC_CATEGORY_NL || cat == UTF8PROC_CATEGORY_NO;
}

bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216f) || (c >= 0x24b6 && c <= 0x24cf);
}

bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba || (c >= 0x2170 && c <= 0x217f) ||
         (c >= 0x24d0 && c <= 0x24e9) || (c >= 0x02b0 && c <= 0x02b8) || (c >= 0x1d2c && c <= 0x1d6a);
}

bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7f;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_identifier_start(char32_t c) {
  return c == '_' || is_alpha(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NL);
}

bool is_identifier_part(char32_t c) {
  if (is_identifier_start(c) || is_decimal(c)) return true;
  if (c < 0x80) return false;
  const auto cat = category(c);
  return cat == UTF8PROC_CATEGORY_MN || cat == UTF8PROC_CATEGORY_MC || cat == UTF8PROC_CATEGORY_PC || c == 0xb7;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

void append_upper(std::string& out, char32_t c) {
  if (const LongCase* l = long_case(c)) {
    out += l->upper;
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_toupper(code_of(c))), out);
  }
}

void append_title(std::string& out, char32_t c) {
  if (const LongCase* l = long_case(c)) {
    out += l->title;
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_totitle(code_of(c))), out);
  }
}

void append_lower(std::string& out, char32_t c, std::string_view s, size_t pos) {
  constexpr char32_t kDottedI = 0x130, kSigma = 0x3a3, kFinalSigma = 0x3c2;
  if (c == kDottedI) {
    out += "i\xcc\x87";
  } else if (c == kSigma && sigma_is_final(s, pos)) {
    append_utf8(kFinalSigma, out);
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_tolower(code_of(c))), out);
  }
}

size_t find_bytes(std::string_view s, std::string_view needle, size_t from) {
  // A short needle cannot make the plain search slow; a long one in a repetitive text can, so it gets the
  // Knuth-Morris-Pratt table.
  constexpr size_t kShortNeedle = 32;
  if (needle.size() <= kShortNeedle) return s.find(needle, from);
  if (from > s.size() || needle.size() > s.size() - from) return std::string_view::npos;
  std::vector<size_t> border(needle.size(), 0);
  for (size_t i = 1, k = 0; i < needle.size(); ++i) {
    while (k > 0 && needle[i] != needle[k]) k = border[k - 1];
    if (needle[i] == needle[k]) ++k;
    border[i] = k;
  }
  for (size_t i = from, k = 0; i < s.size(); ++i) {
    while (k > 0 && s[i] != needle[k]) k = border[k - 1];
    if (s[i] == needle[k]) ++k;
    if (k == needle.size()) return i + 1 - k;
  }
  return std::string_view::npos;
}

size_t rfind_bytes(std::string_view s, std::string_view needle) {
  constexpr size_t kShortNeedle = 32;
  if (needle.size() <= kShortNeedle) return s.rfind(needle);
  const std::string reversed_text(s.rbegin(), s.rend());
  const std::string reversed_needle(needle.rbegin(), needle.rend());
  const size_t found = find_bytes(reversed_text, reversed_needle, 0);
  return found == std::string_view::npos ? found : s.size() - found - needle.size();
}

}  // namespace chimere::jinja

// unicode.cpp  UTF-8 walking and character properties on top of utf8proc.
#include "jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "jinja/case_table.h"

namespace chimere::jinja {
namespace {

utf8proc_category_t category(int32_t c) { return c < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c); }

const LongCase* long_case(int32_t c) {
  const auto* end = std::end(kLongCases);
  const auto* it =
      std::lower_bound(std::begin(kLongCases), end, c, [](const LongCase& l, int32_t v) { return l.code_point < v; });
  return it != end && it->code_point == c ? it : nullptr;
}

bool is_cased(int32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

// Word_Break MidLetter and friends, marks and modifiers: what the final sigma rule skips over.
bool is_case_ignorable(int32_t c) {
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
    } while (i > 0 && (static_cast<unsigned char>(s[i]) & 0xC0) == 0x80);
    const int32_t c = decode_at(s, i).value;
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

CodePoint decode_at(std::string_view s, size_t pos) {
  const auto first = static_cast<unsigned char>(s[pos]);
  if (first < 0x80) return {first, 1};
  utf8proc_int32_t value = -1;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(s.data() + pos),
                                  static_cast<utf8proc_ssize_t>(s.size() - pos), &value);
  if (n <= 0) return {-1, 1};
  return {value, static_cast<size_t>(n)};
}

void append_utf8(std::string& out, int32_t code_point) {
  utf8proc_uint8_t buffer[4];
  const auto n = utf8proc_encode_char(code_point, buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(n));
}

bool is_valid_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const CodePoint c = decode_at(s, i);
    if (c.value < 0) return false;
    i += c.n_bytes;
  }
  return true;
}

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

bool is_space(int32_t c) {
  if (c < 0) return false;
  if (c < 0x80) return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
  if (c == 0x85) return true;
  const auto cat = category(c);
  return cat == UTF8PROC_CATEGORY_ZS || cat == UTF8PROC_CATEGORY_ZL || cat == UTF8PROC_CATEGORY_ZP;
}

bool is_alpha(int32_t c) {
  const auto cat = category(c);
  return cat == UTF8PROC_CATEGORY_LU || cat == UTF8PROC_CATEGORY_LL || cat == UTF8PROC_CATEGORY_LT ||
         cat == UTF8PROC_CATEGORY_LM || cat == UTF8PROC_CATEGORY_LO;
}

bool is_decimal(int32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(int32_t c) {
  return is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2776 && c <= 0x277e);
}

bool is_numeric(int32_t c) {
  const auto cat = category(c);
  return cat == UTF8PROC_CATEGORY_ND || cat == UTF8PROC_CATEGORY_NL || cat == UTF8PROC_CATEGORY_NO;
}

bool is_upper(int32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216f) || (c >= 0x24b6 && c <= 0x24cf);
}

bool is_lower(int32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba || (c >= 0x2170 && c <= 0x217f) ||
         (c >= 0x24d0 && c <= 0x24e9) || (c >= 0x02b0 && c <= 0x02b8) || (c >= 0x1d2c && c <= 0x1d6a);
}

bool is_title(int32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_printable(int32_t c) {
  if (c < 0) return false;
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

bool is_identifier_start(int32_t c) {
  return c == '_' || is_alpha(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NL);
}

bool is_identifier_part(int32_t c) {
  if (is_identifier_start(c) || is_decimal(c)) return true;
  if (c < 0x80) return false;
  const auto cat = category(c);
  return cat == UTF8PROC_CATEGORY_MN || cat == UTF8PROC_CATEGORY_MC || cat == UTF8PROC_CATEGORY_PC || c == 0xb7;
}

bool is_line_break(int32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

void append_upper(std::string& out, int32_t c) {
  if (const LongCase* l = long_case(c)) {
    out += l->upper;
  } else {
    append_utf8(out, utf8proc_toupper(c));
  }
}

void append_title(std::string& out, int32_t c) {
  if (const LongCase* l = long_case(c)) {
    out += l->title;
  } else {
    append_utf8(out, utf8proc_totitle(c));
  }
}

void append_lower(std::string& out, int32_t c, std::string_view s, size_t pos) {
  constexpr int32_t kDottedI = 0x130, kSigma = 0x3a3, kFinalSigma = 0x3c2;
  if (c == kDottedI) {
    out += "i\xcc\x87";
  } else if (c == kSigma && sigma_is_final(s, pos)) {
    append_utf8(out, kFinalSigma);
  } else {
    append_utf8(out, utf8proc_tolower(c));
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

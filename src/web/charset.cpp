// charset.cpp  Names of charsets as the web uses them, and iconv.
#include "web/charset.h"

#include <iconv.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <optional>

#include "text/utf8.h"

namespace chimere::web {
namespace {

// What pages say, and what they mean by it: browsers agreed on these readings (encoding.spec.whatwg.org). Only names of
// this table are given to iconv, which would load a module for any other and has options of its own behind "//".
struct CharsetName {
  const char* label;
  const char* iconv_name;
};
constexpr CharsetName kCharsets[] = {
    {"utf-8", "UTF-8"},
    {"utf8", "UTF-8"},
    {"us-ascii", "CP1252"},
    {"ascii", "CP1252"},
    {"iso-8859-1", "CP1252"},
    {"latin1", "CP1252"},
    {"windows-1252", "CP1252"},
    {"cp1252", "CP1252"},
    {"iso-8859-2", "ISO-8859-2"},
    {"iso-8859-5", "ISO-8859-5"},
    {"iso-8859-7", "ISO-8859-7"},
    {"iso-8859-9", "CP1254"},
    {"iso-8859-15", "ISO-8859-15"},
    {"windows-1250", "CP1250"},
    {"windows-1251", "CP1251"},
    {"windows-1253", "CP1253"},
    {"windows-1254", "CP1254"},
    {"windows-1255", "CP1255"},
    {"windows-1256", "CP1256"},
    {"windows-1257", "CP1257"},
    {"windows-1258", "CP1258"},
    {"koi8-r", "KOI8-R"},
    {"koi8-u", "KOI8-U"},
    {"shift_jis", "CP932"},
    {"shift-jis", "CP932"},
    {"sjis", "CP932"},
    {"euc-jp", "EUC-JP"},
    {"gb2312", "GB18030"},
    {"gbk", "GB18030"},
    {"gb18030", "GB18030"},
    {"big5", "BIG5-HKSCS"},
    {"euc-kr", "CP949"},
    {"ks_c_5601-1987", "CP949"},
    {"utf-16", "UTF-16LE"},
    {"utf-16le", "UTF-16LE"},
    {"utf-16be", "UTF-16BE"},
};

std::string lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

const char* iconv_name(std::string_view label) {
  const std::string lower = lower_ascii(label);
  for (const CharsetName& known : kCharsets) {
    if (lower == known.label) return known.iconv_name;
  }
  return nullptr;
}

// The value behind "charset=" in `text`, which is in lower case.
std::string charset_value(std::string_view text) {
  size_t at = text.find("charset");
  while (at != std::string_view::npos) {
    size_t pos = at + 7;
    while (pos < text.size() && (text[pos] == ' ' || text[pos] == '\t')) ++pos;
    if (pos < text.size() && text[pos] == '=') {
      ++pos;
      while (pos < text.size() && (text[pos] == ' ' || text[pos] == '"' || text[pos] == '\'')) ++pos;
      size_t end = pos;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '-' || text[end] == '_')) {
        ++end;
      }
      if (end > pos) return std::string(text.substr(pos, end - pos));
    }
    at = text.find("charset", at + 7);
  }
  return {};
}

std::string meta_charset(std::string_view bytes) {
  const std::string head = lower_ascii(bytes.substr(0, 1024));
  for (size_t at = head.find("<meta"); at != std::string::npos; at = head.find("<meta", at + 5)) {
    const size_t end = std::min(head.find('>', at), head.size());
    const std::string value = charset_value(std::string_view(head).substr(at, end - at));
    // A page whose <meta> could be read is not in UTF-16, whatever it says there.
    if (!value.empty()) return value.substr(0, 6) == "utf-16" ? "utf-8" : value;
  }
  return {};
}

std::string valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  Utf8Stream stream;
  stream.push(bytes, out);
  stream.finish(out);
  out.erase(std::remove(out.begin(), out.end(), '\0'), out.end());
  return out;
}

std::string converted(std::string_view bytes, const char* from) {
  const iconv_t state = iconv_open("UTF-8", from);
  if (state == reinterpret_cast<iconv_t>(-1)) return valid_utf8(bytes);
  const size_t limit = bytes.size() * 3;
  std::string out;
  char* in = const_cast<char*>(bytes.data());
  size_t n_in = bytes.size();
  char piece[16384];
  while (n_in > 0 && out.size() <= limit) {
    char* to = piece;
    size_t n_to = sizeof piece;
    const size_t result = iconv(state, &in, &n_in, &to, &n_to);
    const int problem = errno;
    out.append(piece, static_cast<size_t>(to - piece));
    if (result != static_cast<size_t>(-1) || problem == E2BIG) continue;
    out += kReplacementChar;
    if (problem == EINVAL) break;  // the last character is not whole
    ++in;
    --n_in;
  }
  iconv_close(state);
  if (out.size() > limit) out.resize(limit);
  return valid_utf8(out);
}

}  // namespace

std::string charset_of_type(std::string_view content_type) {
  return charset_value(lower_ascii(content_type.substr(0, 256)));
}

std::string decoded_text(std::string_view bytes, std::string_view charset) {
  if (bytes.substr(0, 3) == "\xEF\xBB\xBF") return valid_utf8(bytes.substr(3));
  if (bytes.substr(0, 2) == "\xFF\xFE") return converted(bytes.substr(2), "UTF-16LE");
  if (bytes.substr(0, 2) == "\xFE\xFF") return converted(bytes.substr(2), "UTF-16BE");
  const char* name = iconv_name(charset);
  if (name == nullptr) name = iconv_name(meta_charset(bytes));
  if (name == nullptr) name = is_valid_utf8(bytes) ? "UTF-8" : "CP1252";
  return name == std::string_view("UTF-8") ? valid_utf8(bytes) : converted(bytes, name);
}

}  // namespace chimere::web

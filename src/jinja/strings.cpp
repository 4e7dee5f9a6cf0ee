// strings.cpp  String operations that keep the input marks of what they copy.
#include "jinja/strings.h"

#include <algorithm>
#include <limits>

namespace chimere::jinja {
namespace {

// Rebuilds a text character by character. `fn(out, c, pos)` appends what replaces the character at byte `pos`.
template <class Fn>
Text map_characters(const Text& text, const Fn& fn) {
  const std::string_view s(text.bytes());
  Text result;
  std::string piece;
  for (const Span& span : text.spans()) {
    piece.clear();
    for (size_t i = span.begin; i < span.end;) {
      const CodePoint c = decode_at(s, i);
      if (c.value == kInvalidChar) {
        piece += s[i];
      } else {
        fn(piece, c.value, i);
      }
      i += c.n_bytes;
    }
    result.append(piece, span.is_input);
  }
  return result;
}

size_t previous(std::string_view s, size_t pos) {
  size_t start = pos - 1;
  while (start > 0 && pos - start < 4 && is_continuation(s[start])) --start;
  return decode_at(s, start).n_bytes == pos - start ? start : pos - 1;
}

bool in_set(std::string_view character, std::string_view set) { return set.find(character) != std::string_view::npos; }

}  // namespace

Text strip(const Text& text, const std::string* chars, Side side) {
  const std::string_view s(text.bytes());
  size_t begin = 0, end = s.size();
  const auto strips = [&](size_t pos, size_t n) {
    return chars ? in_set(s.substr(pos, n), *chars) : is_space(decode_at(s, pos).value);
  };
  if (side != Side::right) {
    while (begin < end) {
      const size_t n = decode_at(s, begin).n_bytes;
      if (!strips(begin, n)) break;
      begin += n;
    }
  }
  if (side != Side::left) {
    while (end > begin) {
      const size_t start = previous(s, end);
      if (start < begin || !strips(start, end - start)) break;
      end = start;
    }
  }
  return text.slice(begin, end);
}

Text upper(const Text& text) {
  return map_characters(text, [](std::string& out, char32_t c, size_t) { append_upper(out, c); });
}

Text lower(const Text& text) {
  const std::string_view s(text.bytes());
  return map_characters(text, [s](std::string& out, char32_t c, size_t pos) { append_lower(out, c, s, pos); });
}

Text capitalize(const Text& text) {
  const std::string_view s(text.bytes());
  return map_characters(text, [s](std::string& out, char32_t c, size_t pos) {
    if (pos == 0) {
      append_title(out, c);
    } else {
      append_lower(out, c, s, pos);
    }
  });
}

Text title(const Text& text) {
  const std::string_view s(text.bytes());
  bool after_cased = false;
  return map_characters(text, [&, s](std::string& out, char32_t c, size_t pos) {
    if (after_cased) {
      append_lower(out, c, s, pos);
    } else {
      append_title(out, c);
    }
    after_cased = is_upper(c) || is_lower(c) || is_title(c);
  });
}

Text filter_title(const Text& text) {
  const std::string_view s(text.bytes());
  bool at_start = true;
  return map_characters(text, [&, s](std::string& out, char32_t c, size_t pos) {
    if (c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c)) {
      append_utf8(c, out);
      at_start = true;
      return;
    }
    if (at_start) {
      append_upper(out, c);
    } else {
      append_lower(out, c, s, pos);
    }
    at_start = false;
  });
}

Text escape_html(const Text& text) {
  return map_characters(text, [](std::string& out, char32_t c, size_t) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: append_utf8(c, out);
    }
  });
}

std::vector<Text> split(const Text& text, const std::string& separator, int64_t max) {
  std::vector<Text> parts;
  size_t begin = 0;
  while (max < 0 || static_cast<int64_t>(parts.size()) < max) {
    const size_t found = find_bytes(text.bytes(), separator, begin);
    if (found == std::string::npos) break;
    parts.push_back(text.slice(begin, found));
    begin = found + separator.size();
  }
  parts.push_back(text.slice(begin, text.size()));
  return parts;
}

std::vector<Text> rsplit(const Text& text, const std::string& separator, int64_t max) {
  // Forward search in the mirrored text, so that a long separator stays linear.
  const std::string mirrored(text.bytes().rbegin(), text.bytes().rend());
  const std::string mirrored_separator(separator.rbegin(), separator.rend());
  const size_t size = mirrored.size();
  std::vector<Text> parts;
  size_t begin = 0;
  while (max < 0 || static_cast<int64_t>(parts.size()) < max) {
    const size_t found = find_bytes(mirrored, mirrored_separator, begin);
    if (found == std::string::npos) break;
    parts.push_back(text.slice(size - found, size - begin));
    begin = found + separator.size();
  }
  parts.push_back(text.slice(0, size - begin));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Text> split_whitespace(const Text& text, int64_t max) {
  const std::string_view s(text.bytes());
  std::vector<Text> parts;
  size_t i = 0;
  const auto skip = [&](bool space) {
    while (i < s.size()) {
      const CodePoint c = decode_at(s, i);
      if (is_space(c.value) != space) break;
      i += c.n_bytes;
    }
  };
  while (true) {
    skip(true);
    if (i >= s.size()) return parts;
    if (max >= 0 && static_cast<int64_t>(parts.size()) >= max) {
      parts.push_back(text.slice(i, s.size()));
      return parts;
    }
    const size_t begin = i;
    skip(false);
    parts.push_back(text.slice(begin, i));
  }
}

std::vector<Text> rsplit_whitespace(const Text& text, int64_t max) {
  const std::string_view s(text.bytes());
  std::vector<Text> parts;
  size_t i = s.size();
  const auto skip = [&](bool space) {
    while (i > 0) {
      const size_t start = previous(s, i);
      if (is_space(decode_at(s, start).value) != space) break;
      i = start;
    }
  };
  while (true) {
    skip(true);
    if (i == 0) break;
    if (max >= 0 && static_cast<int64_t>(parts.size()) >= max) {
      parts.push_back(text.slice(0, i));
      break;
    }
    const size_t end = i;
    skip(false);
    parts.push_back(text.slice(i, end));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  const std::string_view s(text.bytes());
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t i = 0; i < s.size();) {
    const CodePoint c = decode_at(s, i);
    if (!is_line_break(c.value)) {
      i += c.n_bytes;
      continue;
    }
    const size_t end = i;
    i += c.n_bytes;
    if (c.value == '\r' && i < s.size() && s[i] == '\n') ++i;
    lines.push_back(text.slice(begin, keep_ends ? i : end));
    begin = i;
  }
  if (begin < s.size()) lines.push_back(text.slice(begin, s.size()));
  return lines;
}

size_t count_words(std::string_view text) {
  size_t n = 0;
  bool after_space = true;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode_at(text, i);
    const bool space = is_space(c.value);
    n += after_space && !space;
    after_space = space;
    i += c.n_bytes;
  }
  return n;
}

size_t count_lines(std::string_view text) {
  size_t n = 1;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode_at(text, i);
    n += is_line_break(c.value);
    i += c.n_bytes;
  }
  return n;
}

size_t count_occurrences(std::string_view text, std::string_view needle) {
  if (needle.empty()) return count_code_points(text) + 1;
  size_t n = 0;
  for (size_t pos = find_bytes(text, needle, 0); pos != std::string_view::npos;
       pos = find_bytes(text, needle, pos + needle.size())) {
    ++n;
  }
  return n;
}

Text replace(const Text& text, const std::string& from, const Text& to, int64_t max) {
  const std::string_view s(text.bytes());
  const uint64_t limit = max < 0 ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(max);
  Text result;
  size_t begin = 0;
  uint64_t n = 0;
  if (from.empty()) {
    for (; n < limit && begin < s.size(); ++n) {
      result.append(to);
      const size_t size = decode_at(s, begin).n_bytes;
      result.append(text, begin, begin + size);
      begin += size;
    }
    if (begin == s.size() && n < limit) result.append(to);
  }
  while (!from.empty() && n < limit) {
    const size_t found = find_bytes(s, from, begin);
    if (found == std::string_view::npos) break;
    result.append(text, begin, found);
    result.append(to);
    begin = found + from.size();
    ++n;
  }
  result.append(text, begin, s.size());
  return result;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t pos = 0;
  for (; index > 0 && pos < text.size(); --index) pos += decode_at(text, pos).n_bytes;
  return pos;
}

}  // namespace chimere::jinja

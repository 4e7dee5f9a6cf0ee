#include "text/utf8.h"

#include <algorithm>

namespace chimere {

void append_utf8(char32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    const size_t n = utf8_length(text, pos);
    if (n == 0) return false;
    pos += n;
  }
  return true;
}

size_t incomplete_utf8(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const char c = text[text.size() - n];
    if (is_continuation(c)) continue;
    return utf8_lead(static_cast<uint8_t>(c)).n_more >= n ? n : 0;
  }
  return 0;
}

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  for (const char ch : bytes) {
    const auto byte = static_cast<uint8_t>(ch);
    if (missing_ > 0) {
      if (byte >= low_ && byte <= high_) {
        held_[n_held_++] = ch;
        low_ = 0x80;
        high_ = 0xBF;
        if (--missing_ == 0) {
          out.append(held_.data(), n_held_);
          n_held_ = 0;
        }
        continue;
      }
      out += kReplacementChar;
      n_held_ = missing_ = 0;
    }
    const Utf8Lead lead = utf8_lead(byte);
    if (byte < 0x80) {
      out += ch;
    } else if (lead.n_more == 0) {
      out += kReplacementChar;
    } else {
      held_[0] = ch;
      n_held_ = 1;
      missing_ = lead.n_more;
      low_ = lead.low;
      high_ = lead.high;
    }
  }
}

void Utf8Stream::finish(std::string& out) {
  if (missing_ > 0) out += kReplacementChar;
  n_held_ = missing_ = 0;
}

}  // namespace chimere

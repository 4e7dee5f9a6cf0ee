#include "tokenizer/charsmap.h"

#include <cstring>

#include "tokenizer/unicode.h"

namespace chimere::tokenizer {
namespace {

constexpr uint32_t kIsValue = 1u << 31;

uint32_t label(uint32_t unit) { return unit & (kIsValue | 0xFF); }
bool ends_key(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit >> 9 & 1) * 8); }

}  // namespace

Result<CharsMap> CharsMap::parse(std::string_view blob) {
  CharsMap map;
  if (blob.empty()) return Result<CharsMap>{std::move(map)};
  uint32_t n_bytes = 0;
  if (blob.size() >= sizeof(n_bytes)) std::memcpy(&n_bytes, blob.data(), sizeof(n_bytes));
  if (blob.size() < sizeof(n_bytes) || n_bytes % sizeof(uint32_t) != 0 || n_bytes > blob.size() - sizeof(n_bytes)) {
    return Error{Code::corrupt,
                 "tokenizer.ggml.precompiled_charsmap: expected the size of a trie and the trie, found " +
                     std::to_string(blob.size()) + " bytes"};
  }
  map.units_.resize(n_bytes / sizeof(uint32_t));
  if (n_bytes > 0) std::memcpy(map.units_.data(), blob.data() + sizeof(n_bytes), n_bytes);
  map.replacements_ = blob.substr(sizeof(n_bytes) + n_bytes);
  if (!map.replacements_.empty() && map.replacements_.back() != '\0') {
    return Error{Code::corrupt, "tokenizer.ggml.precompiled_charsmap: the last replacement has no end"};
  }
  return Result<CharsMap>{std::move(map)};
}

size_t CharsMap::append(std::string_view text, size_t pos, std::string& out) const {
  size_t n_read = 0, begin = 0;
  uint32_t node = offset(unit(0));
  for (size_t i = pos; i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    const uint32_t here = unit(node);
    if (label(here) != byte) break;
    node ^= offset(here);
    if (!ends_key(here)) continue;
    const uint32_t value = unit(node) & ~kIsValue;
    if (value >= replacements_.size()) break;
    n_read = i - pos + 1;
    begin = value;
  }
  if (n_read > 0) {
    out += replacements_.c_str() + begin;
    return n_read;
  }
  const Char c = char_at(text, pos);
  if (c.code != kInvalidChar) {
    out += text.substr(pos, c.len);
  } else {
    out += "\xEF\xBF\xBD";
  }
  return c.len;
}

}  // namespace chimere::tokenizer

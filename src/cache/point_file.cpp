#include "cache/point_file.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace chimere {
namespace {

constexpr char kMagic[8] = {'C', 'H', 'I', 'M', 'P', 'O', 'I', 'N'};
constexpr uint32_t kVersion = 2;
constexpr uint32_t kFillerFlag = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t flags;
  uint64_t key;
  uint64_t scope;
  uint64_t owner;
  uint32_t length;
  uint32_t prefilled;
  uint32_t n_pages;
  uint32_t has_tail;
  uint64_t page_bytes;
  uint64_t recurrent_bytes;
};
static_assert(sizeof(Header) == kPointHeaderBytes);
static_assert(sizeof(PageName) == 16);

Error refuse(const std::string& what, uint64_t expected, uint64_t found) {
  return {Code::corrupt, what + ": expected " + std::to_string(expected) + ", found " + std::to_string(found)};
}

uint64_t head_bytes(const Header& h) {
  return sizeof(Header) + uint64_t{h.length} * sizeof(int32_t) + uint64_t{h.n_pages} * sizeof(PageName) +
         sizeof(uint64_t);
}

// Copies to `to` and advances it.
void put(std::byte*& to, const void* from, uint64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  to += bytes;
}

Status check_checksum(std::span<const std::byte> bytes, const char* what) {
  const auto content = bytes.first(bytes.size() - sizeof(uint64_t));
  uint64_t stored;
  std::memcpy(&stored, bytes.data() + content.size(), sizeof(stored));
  if (const uint64_t actual = hash64(content); actual != stored) return refuse(what, stored, actual);
  return Ok{};
}

// The hexadecimal digits of one word, lower case; false when there is anything else.
bool parse_hex(std::string_view text, uint64_t& value) {
  value = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    value = value << 4 | static_cast<uint64_t>(digit);
  }
  return text.size() == 16;
}

std::string hex(uint64_t value) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

constexpr std::string_view kPointEnd = ".point", kPageEnd = ".page";

}  // namespace

uint64_t prefix_hash(uint64_t key, uint64_t scope) { return hash_mix(key ^ hash_mix(scope + 1)); }

uint64_t prefix_hash(uint64_t hash, std::span<const int32_t> more) {
  for (const int32_t token : more) {
    hash = std::rotl(hash ^ (static_cast<uint32_t>(token) + uint64_t{1}) * 0x9e3779b185ebca87ULL, 29) *
           0xc2b2ae3d27d4eb4fULL;
    hash ^= hash >> 31;
  }
  return hash;
}

PageName page_name(std::span<const std::byte> page) { return {hash64(page, 1), hash64(page, 2)}; }

std::string point_file_name(uint64_t name) { return hex(name).append(kPointEnd); }

std::string page_file_name(const PageName& name) { return (hex(name.a) + hex(name.b)).append(kPageEnd); }

bool parse_point_file_name(std::string_view text, uint64_t& name) {
  return text.size() == 16 + kPointEnd.size() && text.ends_with(kPointEnd) && parse_hex(text.substr(0, 16), name);
}

bool parse_page_file_name(std::string_view text, PageName& name) {
  return text.size() == 32 + kPageEnd.size() && text.ends_with(kPageEnd) && parse_hex(text.substr(0, 16), name.a) &&
         parse_hex(text.substr(16, 16), name.b);
}

std::vector<std::byte> encode_point(const PointFormat& format, const PointRecord& record, const PointBytes& state) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof(kMagic));
  h.version = kVersion;
  h.flags = record.is_filler ? kFillerFlag : 0;
  h.key = format.key;
  h.scope = record.scope;
  h.owner = record.owner;
  h.length = static_cast<uint32_t>(record.tokens.size());
  h.prefilled = static_cast<uint32_t>(record.prefilled);
  h.n_pages = static_cast<uint32_t>(record.pages.size());
  h.has_tail = format.has_tail(h.length);
  h.page_bytes = format.page_bytes;
  h.recurrent_bytes = format.recurrent_bytes;
  CHECK(h.n_pages == format.n_pages(h.length));
  CHECK(state.tail.size() == h.has_tail * format.page_bytes && state.recurrent.size() == format.recurrent_bytes);

  const uint64_t head = head_bytes(h), body = state.tail.size() + state.recurrent.size();
  std::vector<std::byte> out(head + body + sizeof(uint64_t));
  std::byte* to = out.data();
  put(to, &h, sizeof(h));
  put(to, record.tokens.data(), record.tokens.size() * sizeof(int32_t));
  put(to, record.pages.data(), record.pages.size() * sizeof(PageName));
  const uint64_t head_sum = hash64(std::span(out).first(head - sizeof(uint64_t)));
  put(to, &head_sum, sizeof(head_sum));
  put(to, state.tail.data(), state.tail.size());
  put(to, state.recurrent.data(), state.recurrent.size());
  const uint64_t body_sum = hash64(std::span(out).subspan(head, body));
  put(to, &body_sum, sizeof(body_sum));
  return out;
}

uint64_t point_head_bytes(std::span<const std::byte> first) {
  Header h;
  if (first.size() < sizeof(h)) return 0;
  std::memcpy(&h, first.data(), sizeof(h));
  if (h.length > kMaxPointTokens || h.n_pages > kMaxPointTokens / kPageTokens) return 0;
  return head_bytes(h);
}

Result<PointRecord> parse_point_head(const PointFormat& format, std::span<const std::byte> bytes) {
  Header h;
  if (bytes.size() < sizeof(h)) return refuse("size in bytes is below that of the header", sizeof(h), bytes.size());
  std::memcpy(&h, bytes.data(), sizeof(h));
  if (std::memcmp(h.magic, kMagic, sizeof(kMagic)) != 0) {
    return Error{Code::corrupt, "does not start with the magic 'CHIMPOIN'"};
  }
  if (h.version != kVersion) return refuse("version", kVersion, h.version);
  if (h.flags > kFillerFlag) return refuse("flags, at most", kFillerFlag, h.flags);
  if (h.key != format.key) return refuse("key of model and cache format", format.key, h.key);
  if (h.page_bytes != format.page_bytes) return refuse("bytes a page", format.page_bytes, h.page_bytes);
  if (h.recurrent_bytes != format.recurrent_bytes) {
    return refuse("recurrent bytes", format.recurrent_bytes, h.recurrent_bytes);
  }
  if (h.length == 0 || h.length > kMaxPointTokens) return refuse("tokens, at most", kMaxPointTokens, h.length);
  if (h.prefilled > h.length) return refuse("prefilled tokens, at most", h.length, h.prefilled);
  if (h.n_pages != format.n_pages(h.length)) return refuse("pages", format.n_pages(h.length), h.n_pages);
  if (h.has_tail != format.has_tail(h.length)) return refuse("tail", format.has_tail(h.length), h.has_tail);
  if (bytes.size() < head_bytes(h)) return refuse("size in bytes, at least", head_bytes(h), bytes.size());
  TRY(check_checksum(bytes.first(head_bytes(h)), "checksum of the head"));

  PointRecord record;
  record.scope = h.scope;
  record.owner = h.owner;
  record.prefilled = static_cast<int32_t>(h.prefilled);
  record.is_filler = (h.flags & kFillerFlag) != 0;
  const std::byte* from = bytes.data() + sizeof(h);
  record.tokens.resize(h.length);
  std::memcpy(record.tokens.data(), from, h.length * sizeof(int32_t));
  record.pages.resize(h.n_pages);
  if (h.n_pages > 0) std::memcpy(record.pages.data(), from + h.length * sizeof(int32_t), h.n_pages * sizeof(PageName));
  return Result<PointRecord>{std::move(record)};
}

Result<PointRecord> parse_point(const PointFormat& format, std::span<const std::byte> bytes, PointBytes& state) {
  TRY_ASSIGN(PointRecord record, parse_point_head(format, bytes));
  const uint64_t head = point_head_bytes(bytes);
  const uint64_t tail = format.has_tail(record.tokens.size()) ? format.page_bytes : 0;
  const uint64_t size = head + tail + format.recurrent_bytes + sizeof(uint64_t);
  if (bytes.size() != size) return refuse("size in bytes", size, bytes.size());
  TRY(check_checksum(bytes.subspan(head), "checksum of the state"));
  const std::byte* body = bytes.data() + head;
  state.tail.assign(body, body + tail);
  state.recurrent.assign(body + tail, body + tail + format.recurrent_bytes);
  return Result<PointRecord>{std::move(record)};
}

}  // namespace chimere

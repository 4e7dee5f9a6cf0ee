#include "server/tracing/span.h"

#include <algorithm>
#include <random>

namespace chimere::server {
namespace {

constexpr size_t kVersionZeroBytes = 55;

template <size_t N>
std::array<uint8_t, N> random_id() {
  thread_local std::mt19937_64 engine = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  std::array<uint8_t, N> id{};
  while (id == std::array<uint8_t, N>{}) {
    for (size_t i = 0; i < N; i += 8) {
      const uint64_t word = engine();
      for (size_t k = 0; k < 8; ++k) id[i + k] = static_cast<uint8_t>(word >> (8 * k));
    }
  }
  return id;
}

template <size_t N>
std::string as_hex(const std::array<uint8_t, N>& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : id) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

// Capitals are none, says the standard.
int small_hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

template <size_t N>
bool read_hex(std::string_view text, std::array<uint8_t, N>& bytes) {
  for (size_t i = 0; i < N; ++i) {
    const int high = small_hex_digit(text[2 * i]), low = small_hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

}  // namespace

TraceId new_trace_id() { return random_id<16>(); }
SpanId new_span_id() { return random_id<8>(); }
std::string hex_text(const TraceId& id) { return as_hex(id); }
std::string hex_text(const SpanId& id) { return as_hex(id); }

std::optional<TraceParent> parse_traceparent(std::string_view text) {
  if (text.size() < kVersionZeroBytes || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  std::array<uint8_t, 1> version{}, flags{};
  TraceParent parent;
  if (!read_hex(text, version) || !read_hex(text.substr(3), parent.trace) || !read_hex(text.substr(36), parent.span) ||
      !read_hex(text.substr(53), flags)) {
    return std::nullopt;
  }
  if (version[0] == 0xff || parent.trace == TraceId{} || parent.span == SpanId{}) return std::nullopt;
  const std::string_view rest = text.substr(kVersionZeroBytes);
  if (!rest.empty() && (version[0] == 0 || rest[0] != '-')) return std::nullopt;
  parent.is_sampled = (flags[0] & 1) != 0;
  return parent;
}

}  // namespace chimere::server

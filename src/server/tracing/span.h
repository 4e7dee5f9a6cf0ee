// span.h  A piece of work with a beginning and an end, as OpenTelemetry knows it, and the trace that it belongs to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace chimere::server {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

// Random, and never all zeros, which stands for none. Any thread.
TraceId new_trace_id();
SpanId new_span_id();
std::string hex_text(const TraceId& id);
std::string hex_text(const SpanId& id);

// What the header `traceparent` of a request says (W3C Trace Context).
struct TraceParent {
  TraceId trace{};
  SpanId span{};
  bool is_sampled = false;  // whoever began the trace keeps it
};

//   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01       version, trace, span, flags
// Later versions may have more behind it. Anything else is as if it were not there.
std::optional<TraceParent> parse_traceparent(std::string_view text);

struct Attribute {
  std::string key;
  std::variant<std::string, int64_t, double, bool> value;
};

struct Span {
  enum class Kind { internal = 1, server = 2 };  // as in the protocol

  TraceId trace{};
  SpanId id{};
  SpanId parent{};  // all zeros: none
  std::string name;
  Kind kind = Kind::internal;
  int64_t begin_ns = 0, end_ns = 0;  // since 1970
  std::vector<Attribute> attributes;
  std::optional<std::string> error;  // what went wrong; it may be empty
};

}  // namespace chimere::server

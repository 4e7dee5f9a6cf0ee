#include "server/tracing/otlp_json.h"

#include <cstdlib>

#include "text/json.h"

namespace chimere::server {
namespace {

constexpr int kStatusError = 2;

Json value_json(const Attribute& attribute) {
  struct Writer {
    Json operator()(const std::string& text) const { return {{"stringValue", text}}; }
    Json operator()(int64_t number) const { return {{"intValue", std::to_string(number)}}; }
    Json operator()(double number) const { return {{"doubleValue", number}}; }
    Json operator()(bool is_so) const { return {{"boolValue", is_so}}; }
  };
  return std::visit(Writer(), attribute.value);
}

Json attributes_json(const std::vector<Attribute>& attributes) {
  Json list = Json::array();
  for (const Attribute& attribute : attributes) {
    list.push_back({{"key", attribute.key}, {"value", value_json(attribute)}});
  }
  return list;
}

Json span_json(const Span& span) {
  Json json;
  json["traceId"] = hex_text(span.trace);
  json["spanId"] = hex_text(span.id);
  if (span.parent != SpanId{}) json["parentSpanId"] = hex_text(span.parent);
  json["name"] = span.name;
  json["kind"] = static_cast<int>(span.kind);
  json["startTimeUnixNano"] = std::to_string(span.begin_ns);
  json["endTimeUnixNano"] = std::to_string(span.end_ns);
  if (!span.attributes.empty()) json["attributes"] = attributes_json(span.attributes);
  if (span.error) {
    json["status"] = Json{{"code", kStatusError}};
    if (!span.error->empty()) json["status"]["message"] = *span.error;
  }
  return json;
}

}  // namespace

std::string otlp_json(const std::vector<Span>& spans, const std::vector<Attribute>& resource,
                      const std::string& version) {
  Json list = Json::array();
  for (const Span& span : spans) list.push_back(span_json(span));
  Json scoped = {{"scope", {{"name", "chimere"}, {"version", version}}}, {"spans", std::move(list)}};
  Json of_resource = {{"resource", {{"attributes", attributes_json(resource)}}},
                      {"scopeSpans", Json::array({std::move(scoped)})}};
  return to_text(Json{{"resourceSpans", Json::array({std::move(of_resource)})}});
}

uint64_t rejected_spans(const std::string& answer) {
  const auto json = parse_json(answer);
  if (!json || !json->is_object() || !json->contains("partialSuccess")) return 0;
  const Json& partial = (*json)["partialSuccess"];
  if (!partial.is_object() || !partial.contains("rejectedSpans")) return 0;
  const Json& n = partial["rejectedSpans"];
  if (n.is_number_unsigned()) return n.get<uint64_t>();
  return n.is_string() ? std::strtoull(n.get_ref<const std::string&>().c_str(), nullptr, 10) : 0;
}

}  // namespace chimere::server

// otlp_json.h  Spans as the body of a request to a collector: OpenTelemetry's protocol (OTLP 1.x) over HTTP, in JSON. Ids are
// hexadecimal there, and numbers of 64 bits are texts.
#pragma once

#include <string>
#include <vector>

#include "server/tracing/span.h"

namespace chimere::server {

// `resource`: who speaks, such as service.name.
std::string otlp_json(const std::vector<Span>& spans, const std::vector<Attribute>& resource,
                      const std::string& version);

// How many spans of a request that it took the collector did not keep, by its answer.
uint64_t rejected_spans(const std::string& answer);

}  // namespace chimere::server

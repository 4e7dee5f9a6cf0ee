// tracing.h  Where traces of `chimere serve` go: to the collector that --otlp names, or else OpenTelemetry's own variables.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "server/tracing/tracer.h"

namespace chimere::apps {

// `otlp`: an address, `none`, or nothing. Nothing comes back where nothing is to be sent. An address of --otlp that is none is
// an error; one of the environment, which may be meant for others, is a warning.
Result<std::optional<server::TracerConfig>> trace_config(const std::string& otlp);

}  // namespace chimere::apps

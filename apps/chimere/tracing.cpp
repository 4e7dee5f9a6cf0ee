#include "tracing.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <utility>

#include "version.h"

namespace chimere::apps {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The one for traces alone wins.
std::string variable_for_traces(const char* of_traces, const char* of_all) {
  std::string value = variable(of_traces);
  return value.empty() ? variable(of_all) : value;
}

}  // namespace

Result<std::optional<server::TracerConfig>> trace_config(const std::string& otlp) {
  std::optional<server::TracerConfig> none;
  if (otlp == "none" || (otlp.empty() && variable("OTEL_SDK_DISABLED") == "true")) return none;
  server::TracerConfig config;
  if (!otlp.empty()) {
    auto url = server::traces_url(otlp);
    if (!url) return Error{url.error().code, "--otlp: " + url.error().message};
    config.url = std::move(*url);
  } else {
    const std::string endpoint =
        variable_for_traces("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
    if (endpoint.empty()) return none;
    auto url = server::traces_url(endpoint);
    if (!url) {
      spdlog::warn("no traces are sent: OTEL_EXPORTER_OTLP_ENDPOINT: {}", url.error().message);
      return none;
    }
    config.url = std::move(*url);
  }
  auto headers = server::parse_trace_headers(
      variable_for_traces("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"));
  if (!headers) return Error{headers.error().code, "OTEL_EXPORTER_OTLP_HEADERS: " + headers.error().message};
  config.headers = std::move(*headers);
  if (const std::string name = variable("OTEL_SERVICE_NAME"); !name.empty()) config.service = name;
  config.version = version_number();
  return std::optional(std::move(config));
}

}  // namespace chimere::apps

// log.cpp  Lines as JSON.
#include "server/http/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <ctime>

#include "server/http/json.h"

namespace chimere::server {
namespace {

// Messages of this logger are JSON objects already when the log is JSON.
constexpr const char* kFacts = "facts";

std::atomic<LogFormat> format_in_use{LogFormat::text};

std::string time_text(spdlog::log_clock::time_point time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + n, sizeof text - n, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const std::string_view payload(msg.payload.data(), msg.payload.size());
    const auto level = spdlog::level::to_string_view(msg.level);
    Json json;
    json["time"] = time_text(msg.time);
    json["level"] = std::string(level.data(), level.size());
    const bool is_facts = std::string_view(msg.logger_name.data(), msg.logger_name.size()) == kFacts;
    if (is_facts) {
      if (auto facts = parse_json(payload)) json.update(*facts);
    } else {
      json["message"] = payload;
    }
    const std::string line = to_text(json) + "\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

}  // namespace

void start_log(LogFormat format) {
  format_in_use = format;
  spdlog::drop(kFacts);
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  if (format == LogFormat::json) sink->set_formatter(std::make_unique<JsonFormatter>());
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("chimere", sink));
  if (format == LogFormat::json) spdlog::register_logger(std::make_shared<spdlog::logger>(kFacts, sink));
}

void log_facts(const std::string& text, const std::string& json) {
  if (format_in_use == LogFormat::json) {
    if (const auto logger = spdlog::get(kFacts)) logger->info("{}", json);
    return;
  }
  spdlog::info("{}", text);
}

std::string printable(std::string_view text, size_t longest) {
  std::string out(text.substr(0, longest));
  if (text.size() > longest) out += "...";
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

}  // namespace chimere::server

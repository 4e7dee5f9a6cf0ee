#include "server/protocols/shared/thinking_field.h"

#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {
namespace {

using orchestrator::ThinkingOptions;

constexpr int32_t kMaxWindow = 1024;
constexpr size_t kMaxPhraseBytes = 512;
constexpr size_t kMaxTriggers = 128;
constexpr size_t kMaxTriggerBytes = 64;
constexpr double kMaxCertainty = 2;  // above 1: never

void number(JsonFields& fields, const char* name, std::optional<float>& out, double low, double high) {
  if (!fields.find(name)) return;
  float value = 0;
  fields.number(name, value, low, high);
  out = value;
}

void integer(JsonFields& fields, const char* name, std::optional<int32_t>& out, int32_t low, int32_t high) {
  if (!fields.find(name)) return;
  int value = 0;
  fields.integer(name, value, low, high);
  out = value;
}

void boolean(JsonFields& fields, const char* name, std::optional<bool>& out) {
  if (!fields.find(name)) return;
  bool value = false;
  fields.boolean(name, value);
  out = value;
}

void phrase(JsonFields& fields, const char* name, std::optional<std::string>& out) {
  if (!fields.find(name)) return;
  std::string value;
  fields.string(name, value);
  if (value.empty() || value.size() > kMaxPhraseBytes) {
    fields.fail(name, "expected a text of 1 to " + std::to_string(kMaxPhraseBytes) + " bytes, found one of " +
                          std::to_string(value.size()));
  }
  out = std::move(value);
}

}  // namespace

void read_thinking_control(JsonFields& fields, ThinkingOptions& options) {
  const Json* object = fields.object("thinking_control");
  if (!object) return;
  JsonFields inner(*object, "thinking_control.");
  if (inner.find("mode")) {
    std::string mode;
    inner.string("mode", mode);
    options.mode = orchestrator::thinking_mode(mode);
    if (!options.mode) inner.fail("mode", "expected off, fast, quality or ultra, found '" + mode.substr(0, 64) + "'");
  }
  integer(inner, "window", options.window, 1, kMaxWindow);
  integer(inner, "min_tokens", options.min_tokens, 0, kMaxInt);
  number(inner, "close_above", options.close_above, 0, kMaxCertainty);
  number(inner, "extend_below", options.extend_below, 0, kMaxCertainty);
  integer(inner, "max_extensions", options.max_extensions, 0, 64);
  phrase(inner, "extension", options.extension);
  phrase(inner, "warning", options.warning);
  integer(inner, "warn_before", options.warn_before, 0, kMaxInt);
  integer(inner, "answer_tokens", options.answer_tokens, 0, kMaxInt);
  number(inner, "suppress_above", options.suppress_above, 0, kMaxCertainty);
  number(inner, "release_below", options.release_below, 0, kMaxCertainty);
  boolean(inner, "close_at_reflection", options.close_at_reflection);
  if (inner.find("triggers")) options.triggers = read_strings(inner, "triggers", kMaxTriggers, kMaxTriggerBytes);
  boolean(inner, "loop_guard", options.loop_guard);
  integer(inner, "loop_tokens", options.loop_tokens, 4, 4096);
  number(inner, "loop_penalty", options.loop_penalty, 0, 100);
  for (const std::string& name : inner.unknown()) {
    inner.fail(name.substr(name.find('.') + 1), "expected one of the fields of docs/thinking.md, found another");
  }
  fields.take_error(inner);
}

}  // namespace chimere::server

// fuzz_template.cpp  libFuzzer target: a template source, rendered over fixed variables under tight limits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "jinja/json.h"
#include "jinja/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere::jinja;
  static const auto kGlobals = value_from_json(
      R"({"messages": [{"role": "system", "content": "S <|im_end|>"}, {"role": "user", "content": "été\n x "},
          {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function":
          {"name": "f", "arguments": {"k": [1, 2.5, null, true]}}}]}, {"role": "tool", "content": "r"}],
          "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties":
          {"k": {"type": "array"}}}}}], "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>",
          "n": 3, "big": 123456789012345678901234567890})",
      true);
  Limits limits;
  limits.max_output_bytes = 1 << 16;
  limits.max_value_bytes = 1 << 18;
  limits.max_live_bytes = 1 << 22;
  limits.max_steps = 200'000;
  limits.max_time = std::chrono::milliseconds(500);
  const auto parsed = Template::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) return 0;
  const auto rendered = parsed->render(*kGlobals, limits, [] { return std::tm{}; });
  if (!rendered) return 0;
  // The spans must cover the text without gaps, and neighbours must differ.
  size_t end = 0;
  for (size_t i = 0; i < rendered->spans.size(); ++i) {
    const Span& span = rendered->spans[i];
    if (span.begin != end || span.end <= span.begin) std::abort();
    if (i > 0 && rendered->spans[i - 1].is_input == span.is_input) std::abort();
    end = span.end;
  }
  if (end != rendered->text.size()) std::abort();
  return 0;
}

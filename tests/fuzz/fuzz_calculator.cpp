// fuzz_calculator.cpp  libFuzzer target: bytes as an expression. What is exact reads back as the same value.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/utf8.h"
#include "tools/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere::tools;
  const std::string_view expression(reinterpret_cast<const char*>(data), size);
  const auto answer = evaluate(expression);
  if (!answer) {
    CHECK(!answer.error().message.empty());
    return 0;
  }
  CHECK(!answer->text.empty() && answer->text.size() <= kMaxShownDigits + 200 && chimere::is_valid_utf8(answer->text));
  if (answer->is_rounded || answer->text == "true" || answer->text == "false") return 0;
  const auto again = evaluate(answer->text);
  CHECK(again && again->text == answer->text);
  return 0;
}

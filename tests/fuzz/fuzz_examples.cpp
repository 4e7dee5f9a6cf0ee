// fuzz_examples.cpp  libFuzzer target of examples to learn from: a line of JSON.
//
// A line is refused with a reason, or is a text, or a conversation whose last message is the assistant's.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "improve/examples/example_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto line = chimere::improve::parse_example({reinterpret_cast<const char*>(data), size});
  if (!line) {
    CHECK(!line.error().message.empty());
    return 0;
  }
  CHECK(line->weight > 0 && line->weight <= 1000);
  const auto& messages = line->conversation.messages;
  CHECK(messages.empty() || (messages.size() >= 2 && messages.back().role == "assistant"));
  return 0;
}

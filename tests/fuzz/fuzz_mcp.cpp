// fuzz_mcp.cpp  libFuzzer target: bytes as messages of the Model Context Protocol. The first byte says how they come: as
// lines, as events of a stream, or as one message to our own server.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"
#include "tools/calculator.h"
#include "tools/mcp_content.h"
#include "tools/mcp_server.h"
#include "tools/rpc.h"
#include "tools/toolbox.h"

namespace {

using namespace chimere::tools;

template <class Frames>
std::vector<std::string> cut(std::string_view bytes, size_t at) {
  Frames frames;
  std::vector<std::string> texts;
  const auto take = [&texts](std::string_view text) { texts.emplace_back(text); };
  CHECK(frames.push(bytes.substr(0, at), take));
  CHECK(frames.push(bytes.substr(at), take));
  return texts;
}

// However the bytes arrive, the messages are the same.
template <class Frames>
void read_stream(std::string_view bytes) {
  const std::vector<std::string> whole = cut<Frames>(bytes, 0);
  CHECK(whole == cut<Frames>(bytes, bytes.size() / 2) && whole == cut<Frames>(bytes, bytes.size() / 3));
  for (const std::string& text : whole) {
    const auto message = parse_rpc(text);
    if (!message) continue;
    CHECK(message->is_response() ? message->error.has_value() || !message->id.is_null()
                                 : message->method.size() <= 256);
    const ToolResult result = mcp_result(message->result);
    CHECK(result.is_untrusted && !result.text.empty());
    const std::string name = mcp_tool_name("s", message->method, {"s__"});
    CHECK(is_tool_name(name));
  }
}

void ask_server(std::string_view message) {
  static const Toolbox* const kTools = [] {
    auto* tools = new Toolbox;
    CHECK(tools->add(make_calculator()));
    return tools;
  }();
  static const McpServer kServer(*kTools, "1");
  const std::string reply = kServer.answer(message, {});
  if (reply.empty()) return;
  CHECK(chimere::is_valid_utf8(reply) && reply.find('\n') == std::string::npos);
  const auto parsed = parse_rpc(reply);
  CHECK(parsed && parsed->is_response());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: read_stream<LineFrames>(bytes); break;
    case 1: read_stream<EventFrames>(bytes); break;
    default: ask_server(bytes);
  }
  return 0;
}

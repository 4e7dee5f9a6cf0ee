#include "tools/rpc.h"

#include <gtest/gtest.h>

#include "tools/mcp_content.h"
#include "tools/toolbox.h"

namespace chimere::tools {
namespace {

TEST(Rpc, ReadsRequestsNotificationsAndResponses) {
  const auto request = parse_rpc(R"({"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->is_request());
  EXPECT_EQ(request->params["x"], 1);
  const auto notification = parse_rpc(rpc_notification("n", Json()));
  ASSERT_TRUE(notification);
  EXPECT_FALSE(notification->is_request() || notification->is_response());
  const auto result = parse_rpc(rpc_result(3, Json{{"ok", true}}));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->is_response());
  EXPECT_EQ(result->id, 3);
  const auto error = parse_rpc(rpc_failure(Json(), -32700, "no"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->error->code, -32700);
}

TEST(Rpc, RefusesWhatIsNoMessage) {
  for (const char* text : {
           "",
           "x",
           "1",
           "[]",
           "{}",
           R"({"jsonrpc":"1.0","id":1,"method":"m"})",
           R"({"jsonrpc":"2.0","id":1.5,"method":"m"})",
           R"({"jsonrpc":"2.0","id":{},"method":"m"})",
           R"({"jsonrpc":"2.0","id":1,"method":""})",
           R"({"jsonrpc":"2.0","id":1,"method":"m","params":[1]})",
           R"({"jsonrpc":"2.0","id":1,"method":"m","result":1})",
           R"({"jsonrpc":"2.0","id":1})",
           R"({"jsonrpc":"2.0","result":1})",
           R"({"jsonrpc":"2.0","id":1,"result":1,"error":1})",
           R"({"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"y"}})",
           R"({"jsonrpc":"2.0","id":1,"error":{"code":1}})",
       }) {
    EXPECT_FALSE(parse_rpc(text)) << text;
  }
  EXPECT_FALSE(parse_rpc(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(300, 'm') + "\"}"));
  EXPECT_FALSE(parse_rpc(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":)" + std::string(100, '[')));
  EXPECT_EQ(parse_rpc(std::string(kMaxRpcBytes + 1, ' ')).error().code, Code::exhausted);
}

template <class Frames>
std::vector<std::string> frames_of(std::string_view bytes, size_t step) {
  Frames frames;
  std::vector<std::string> all;
  for (size_t i = 0; i < bytes.size(); i += step) {
    EXPECT_TRUE(frames.push(bytes.substr(i, step), [&](std::string_view text) { all.emplace_back(text); }));
  }
  return all;
}

TEST(Rpc, CutsStreamsHoweverTheyArrive) {
  for (const size_t step : {1, 2, 3, 100}) {
    EXPECT_EQ(frames_of<LineFrames>("one\r\n\ntwo\nunfinished", step), (std::vector<std::string>{"one", "two"}));
    EXPECT_EQ(frames_of<EventFrames>(
                  ": note\nevent: message\ndata: a\ndata:b\nid: 1\n\ndata: c\r\n\r\ndata:\n\ndata: unfinished\n", step),
              (std::vector<std::string>{"a\nb", "c"}));
  }
  const std::string long_line(kMaxRpcBytes + 1, 'x');
  LineFrames lines;
  EXPECT_FALSE(lines.push(long_line, [](std::string_view) {}));
  LineFrames ended;
  EXPECT_FALSE(ended.push(long_line + "\n", [](std::string_view) {}));
  EventFrames events;
  EXPECT_FALSE(events.push("data: " + long_line, [](std::string_view) {}));
}

TEST(McpContent, ShowsEachKind) {
  const ToolResult result = mcp_result(*parse_json(R"({"content":[
      {"type":"text","text":"hello"},
      {"type":"image","mimeType":"image/png","data":"QUJDRA=="},
      {"type":"audio","mimeType":"audio/wav","data":"QUJD"},
      {"type":"resource","resource":{"uri":"file:///a","text":"inside"}},
      {"type":"resource","resource":{"uri":"file:///b","mimeType":"x/y","blob":"QUJD"}},
      {"type":"resource_link","name":"c","uri":"file:///c"},
      {"type":"smell"}, 7]})"));
  EXPECT_EQ(result.text,
            "hello\n[image: image/png, 6 bytes]\n[audio: audio/wav, 3 bytes]\n[resource: file:///a]\ninside\n"
            "[resource: file:///b, x/y, 3 bytes]\n[link: c file:///c]\n[content of an unknown type 'smell']\n"
            "[content that is no object]");
  EXPECT_TRUE(result.is_untrusted);
  EXPECT_FALSE(result.is_error);
  EXPECT_EQ(mcp_result(*parse_json(R"({"structuredContent":{"a":1},"isError":true})")).text, R"({"a":1})");
  EXPECT_TRUE(mcp_result(*parse_json(R"({"content":[],"isError":true})")).is_error);
  EXPECT_TRUE(mcp_result(Json(3)).is_error);
}

TEST(McpContent, MakesNamesValidAndDifferent) {
  EXPECT_EQ(mcp_tool_name("files", "read/file é", {}), "files__read_file___");
  const std::string cut = mcp_tool_name("files", std::string(100, 'a'), {});
  EXPECT_EQ(cut.size(), 64u);
  const std::string second = mcp_tool_name("files", std::string(101, 'a'), {cut});
  EXPECT_NE(second, cut);
  EXPECT_TRUE(is_tool_name(second));
}

}  // namespace
}  // namespace chimere::tools

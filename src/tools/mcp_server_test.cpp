#include "tools/mcp_server.h"

#include <gtest/gtest.h>

#include "tools/calculator.h"
#include "tools/clock.h"
#include "tools/rpc.h"

namespace chimere::tools {
namespace {

class McpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(box_.add(make_calculator()));
    ASSERT_TRUE(box_.add(make_clock(), Policy::ask));
  }
  RpcMessage ask(const std::string& method, const Json& params) {
    const auto reply = parse_rpc(server_.answer(rpc_request(7, method, params), {}));
    EXPECT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->id, 7);
    return *reply;
  }
  Toolbox box_;
  const McpServer server_{box_, "1.2"};
};

TEST_F(McpServerTest, Greets) {
  const RpcMessage known = ask("initialize", Json{{"protocolVersion", "2025-03-26"}});
  EXPECT_EQ(known.result["protocolVersion"], "2025-03-26");
  EXPECT_EQ(known.result["serverInfo"]["version"], "1.2");
  EXPECT_TRUE(known.result["capabilities"].contains("tools"));
  EXPECT_EQ(ask("initialize", Json{{"protocolVersion", "1999"}}).result["protocolVersion"], "2025-11-25");
  EXPECT_EQ(server_.answer(rpc_notification("notifications/initialized", Json()), {}), "");
  EXPECT_EQ(ask("ping", Json()).result, Json::object());
}

TEST_F(McpServerTest, ListsAndCallsWhatIsAllowed) {
  const RpcMessage list = ask("tools/list", Json());
  ASSERT_EQ(list.result["tools"].size(), 1u);
  EXPECT_EQ(list.result["tools"][0]["name"], "calculator");
  EXPECT_EQ(list.result["tools"][0]["inputSchema"]["required"][0], "expression");
  EXPECT_EQ(ask("tools/list", Json{{"cursor", "x"}}).error->code, kRpcInvalidParams);

  const RpcMessage right = ask("tools/call", *parse_json(R"({"name":"calculator","arguments":{"expression":"6*7"}})"));
  EXPECT_EQ(right.result["content"][0]["text"], "42");
  EXPECT_EQ(right.result["isError"], false);
  const RpcMessage wrong = ask("tools/call", *parse_json(R"({"name":"calculator","arguments":{"expression":"1/0"}})"));
  EXPECT_EQ(wrong.result["isError"], true);
  EXPECT_TRUE(ask("tools/call", *parse_json(R"({"name":"calculator","arguments":[1]})")).result["isError"].get<bool>());
  EXPECT_TRUE(ask("tools/call", *parse_json(R"({"name":"calculator"})")).result["isError"].get<bool>());
  for (const char* name : {"clock", "nobody", ""}) {
    EXPECT_EQ(ask("tools/call", Json{{"name", name}}).error->code, kRpcInvalidParams) << name;
  }
  const McpServer few(box_, "1", {"clock"});
  EXPECT_NE(few.answer(rpc_request(1, "tools/list", Json()), {}).find("\"tools\":[]"), std::string::npos);
}

TEST_F(McpServerTest, AnswersWhatItDoesNotKnowOrCannotRead) {
  EXPECT_EQ(ask("resources/list", Json()).error->code, kRpcUnknownMethod);
  EXPECT_EQ(parse_rpc(server_.answer("{", {}))->error->code, kRpcParseError);
  EXPECT_EQ(parse_rpc(server_.answer("[]", {}))->error->code, kRpcInvalidRequest);
  EXPECT_EQ(server_.answer(rpc_result(1, Json()), {}), "");
  EXPECT_EQ(server_.answer(rpc_notification("unknown", Json()), {}), "");
}

}  // namespace
}  // namespace chimere::tools

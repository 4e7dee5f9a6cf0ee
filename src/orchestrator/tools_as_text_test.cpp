// tools_as_text_test.cpp  What a template without tools gets to see.
#include "orchestrator/tools_as_text.h"

#include <gtest/gtest.h>

namespace chimere::orchestrator {
namespace {

chat::Message said(const char* role, const char* content) {
  chat::Message message;
  message.role = role;
  message.content = content;
  return message;
}

TEST(ToolsAsText, DescribesThemInTheSystemPrompt) {
  const auto added = tools_as_text({said("user", "Hi")}, {{R"({"name":"f"})"}});
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[0].role, "system");
  EXPECT_NE(added[0].content->find("<tools>\n{\"name\":\"f\"}\n</tools>"), std::string::npos) << *added[0].content;
  const auto joined = tools_as_text({said("system", "Be kind."), said("user", "Hi")}, {{R"({"name":"f"})"}});
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0].content->rfind("Be kind.\n\n", 0), 0u);
}

TEST(ToolsAsText, WritesCallsAndResults) {
  chat::Message call = said("assistant", "");
  call.tool_calls = {{"c1", "f", R"({"x":1})"}, {"c2", "g", ""}};
  const auto messages = tools_as_text({said("user", "Hi"), call, said("tool", "one"), said("tool", "two")}, {});
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2].content,
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\":1}}\n</tool_call>\n\n"
            "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>");
  EXPECT_TRUE(messages[2].tool_calls.empty());
  EXPECT_EQ(messages[3].role, "user");
  EXPECT_EQ(messages[3].content, "<tool_response>\none\n</tool_response>\n\n<tool_response>\ntwo\n</tool_response>");
}

TEST(ToolsAsText, KeepsPartsOfAMessage) {
  chat::Message system;
  system.role = "system";
  system.content_parts_json = R"([{"type":"text","text":"a"}])";
  const auto messages = tools_as_text({system, said("user", "Hi")}, {});
  EXPECT_EQ(messages[0].content_parts_json.rfind(R"([{"type":"text","text":"a"},{"type":"text","text":"\nYou can)", 0),
            0u)
      << messages[0].content_parts_json;
  EXPECT_EQ(messages[0].content_parts_json.back(), ']');
}

}  // namespace
}  // namespace chimere::orchestrator

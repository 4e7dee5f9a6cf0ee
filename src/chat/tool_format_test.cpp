// tool_format_test.cpp  Formats found in templates of real models.
#include "chat/tool_format.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace chimere::chat {
namespace {

std::string template_named(const std::string& name) {
  std::ifstream in(CHIMERE_TESTS_DIR "/golden/templates/" + name + ".jinja");
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

TEST(ToolFormat, IsFoundInTheTemplate) {
  EXPECT_EQ(detect_tool_format(template_named("Qwen3.5-4B")), ToolFormat::xml);
  EXPECT_EQ(detect_tool_format(template_named("Qwen3-Coder")), ToolFormat::xml);
  EXPECT_EQ(detect_tool_format(template_named("Qwen-Qwen3-0.6B")), ToolFormat::hermes);
  EXPECT_EQ(detect_tool_format(template_named("ibm-granite-granite-4.0")), ToolFormat::hermes);
  EXPECT_EQ(detect_tool_format(template_named("mistralai-Mistral-Nemo-Instruct-2407")), ToolFormat::mistral);
  EXPECT_TRUE(detect_harmony(template_named("openai-gpt-oss-120b")));
  EXPECT_FALSE(detect_harmony(template_named("Qwen3.5-4B")));
  EXPECT_EQ(detect_tool_format("{{ '<|start_header_id|>ipython<|end_header_id|>' }}"), ToolFormat::llama3);
  EXPECT_EQ(detect_tool_format("{{ messages[0].content }}"), ToolFormat::none);
}

TEST(ToolFormat, ThoughtMarkersToo) {
  EXPECT_EQ(detect_thought_markers(template_named("Qwen3.5-4B")).close, "</think>");
  EXPECT_EQ(detect_thought_markers("{{ '[THINK]' + m.reasoning_content + '[/THINK]' }}").open, "[THINK]");
}

}  // namespace
}  // namespace chimere::chat

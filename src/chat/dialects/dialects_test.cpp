// dialects_test.cpp  Dialects found in templates of real models.
#include "chat/dialects/dialect.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "chat/markers.h"

namespace chimere::chat {
namespace {

std::string template_named(const std::string& name) {
  std::ifstream in(CHIMERE_TESTS_DIR "/golden/templates/" + name + ".jinja");
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::string_view name_of(const std::string& source) { return detect_dialect(source).name; }

TEST(Dialects, AreFoundInTheTemplate) {
  EXPECT_EQ(name_of(template_named("Qwen3.5-4B")), "qwen-xml");
  EXPECT_EQ(name_of(template_named("Qwen3-Coder")), "qwen-xml");
  EXPECT_EQ(name_of(template_named("Qwen-Qwen3-0.6B")), "hermes");
  EXPECT_EQ(name_of(template_named("ibm-granite-granite-4.0")), "hermes");
  EXPECT_EQ(name_of(template_named("mistralai-Mistral-Nemo-Instruct-2407")), "mistral");
  EXPECT_EQ(name_of(template_named("openai-gpt-oss-120b")), "harmony");
  EXPECT_EQ(name_of("{{ '<|start_header_id|>ipython<|end_header_id|>' }}"), "llama");
  EXPECT_EQ(name_of("{{ messages[0].content }}"), "hermes");
}

TEST(Dialects, ThoughtMarkersToo) {
  EXPECT_EQ(detect_thought_markers(template_named("Qwen3.5-4B")).close, "</think>");
  EXPECT_EQ(detect_thought_markers("{{ '[THINK]' + m.reasoning_content + '[/THINK]' }}").open, "[THINK]");
}

TEST(Dialects, KeepTheirFramesToThemselves) {
  for (const Dialect* dialect : dialects()) {
    EXPECT_TRUE(is_output_marker("[ARGS]", *dialect));
    EXPECT_TRUE(is_output_marker("</think>", *dialect));
    EXPECT_EQ(is_output_marker("<|end|>", *dialect), dialect->name == "harmony");
  }
}

}  // namespace
}  // namespace chimere::chat

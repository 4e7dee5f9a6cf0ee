// skill_test.cpp  Programs as tools: what their files may say, that an argument stays one, and that a folder is followed.
#include "tools/skill_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_for_test.h"
#include "text/json.h"

namespace chimere::tools {
namespace {

namespace fs = std::filesystem;

// Prints each of its arguments between brackets.
constexpr const char* kShow =
    "description: Shows a text.\n"
    "argv: [/usr/bin/printf, '[%s]', --, '{text}', end]\n"
    "arguments: {text: {description: any text}}\n"
    "policy: allow\n";

Result<Skill> parsed(const std::string& text) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, "show.yaml"));
  return read_skill(root, "show", "show.yaml");
}

std::string call_of(const std::string& text) { return to_text(Json{{"text", text}}); }

TEST(Skill, AnArgumentStaysOneWhateverIsInIt) {
  const auto skill = parsed(kShow);
  ASSERT_TRUE(skill) << skill.error().message;
  const bool can_run = static_cast<bool>(skill_availability());
  const auto tool = make_skill(*skill);
  for (const std::string text : {"; rm -rf /", "$(id) `id` && id | id > /tmp/x", "a 'b' \"c\" \\", "two\nlines\n\n",
                                 "--help", "*", "", "  spaces  ", "{text}", "é\t%s"}) {
    const auto words = skill_words(*skill, call_of(text));
    ASSERT_TRUE(words) << words.error().message;
    EXPECT_EQ(*words, (std::vector<std::string>{"/usr/bin/printf", "[%s]", "--", text, "end"}));
    if (!can_run) continue;
    const ToolResult result = tool->run(call_of(text), {});
    EXPECT_FALSE(result.is_error) << result.text;
    EXPECT_EQ(result.text, "[--][" + text + "][end]");
    EXPECT_TRUE(result.is_untrusted);
  }
}

TEST(Skill, AnOptionIsNotSmuggledIn) {
  const auto skill = parsed("description: x\nargv: [/usr/bin/printf, '{text}']\narguments: {text: {max_bytes: 8}, }\n");
  ASSERT_TRUE(skill) << skill.error().message;
  EXPECT_NE(skill_words(*skill, call_of("-v")).error().message.find("begin with '-'"), std::string::npos);
  EXPECT_NE(skill_words(*skill, call_of("123456789")).error().message.find("at most 8 bytes"), std::string::npos);
  EXPECT_FALSE(skill_words(*skill, call_of(std::string("a\0b", 3))));
  EXPECT_TRUE(skill_words(*skill, call_of("12345678")));
}

TEST(Skill, ArgumentsHaveTypesAndDefaults) {
  const auto skill = parsed(
      "description: x\n"
      "argv: [/usr/bin/seq, '{first}', '{step}', '{last}']\n"
      "arguments:\n"
      "  first: {type: integer}\n"
      "  step: {type: number, required: false}\n"
      "  last: {type: integer, default: 3}\n"
      "seconds: 2.5\noutput_bytes: 100\n");
  ASSERT_TRUE(skill) << skill.error().message;
  EXPECT_EQ(*skill_words(*skill, R"({"first": -1})"), (std::vector<std::string>{"/usr/bin/seq", "-1", "3"}));
  EXPECT_EQ(*skill_words(*skill, R"({"first": 1, "step": 0.5, "last": 2})"),
            (std::vector<std::string>{"/usr/bin/seq", "1", "0.5", "2"}));
  EXPECT_EQ(skill->limits.time, std::chrono::milliseconds(2500));
  EXPECT_EQ(skill->limits.output_bytes, 100u);
  EXPECT_EQ(skill->policy, Policy::ask) << "where its file does not say";
  const auto schema = parse_json(make_skill(*skill)->spec().parameters);
  ASSERT_TRUE(schema);
  EXPECT_EQ((*schema)["required"], Json::array({"first"}));
  EXPECT_EQ((*schema)["properties"]["step"]["type"], "number");
}

TEST(Skill, WhatIsWrongIsNamedWithItsLine) {
  const struct {
    std::string text, expected;
  } cases[] = {
      {"description: x\nargv: [/usr/bin/printf,\n  '{word}']\n", "show.yaml:3:3: argv: expected placeholders"},
      {"description: x\nargv: [/usr/bin/printf, '--x={text}']\narguments: {text: {}}\n", "as an argument of its own"},
      {"description: x\nargv: [/usr/bin/printf]\narguments: {text: {}}\n", "{text} among the words"},
      {"description: x\nargv: ['{text}']\narguments: {text: {}}\n", "expected a program first"},
      {"description: x\nargv: [/no/such/program]\n", "show.yaml:2:8: argv: expected a program"},
      {"description: x\nargv: printf a b\n", "expected a list"},
      {"description: x\n", "expected a list"},
      {"argv: [/usr/bin/printf]\n", "expected `description`"},
      {"description: x\nargv: [/usr/bin/printf]\npolicy: maybe\n", "show.yaml:3:9: expected a policy"},
      {"description: x\nargv: [/usr/bin/printf]\nsecond: 3\n", "did you mean"},
      {"description: x\nargv: [/usr/bin/printf]\nseconds: 9999\n", "seconds"},
      {"description: x\nname: other\nargv: [/usr/bin/printf]\n", "that of the file"},
      {"description: x\nargv: [/usr/bin/printf, '{a}']\narguments: {a: {type: list}}\n", "string, integer, number"},
      {"description: x\nargv: [/usr/bin/printf, '{a}']\narguments: {A: {}}\n", "small letters"},
      {"description: x\nargv: [/usr/bin/printf, '{a}']\narguments: {a: {required: true, default: b}}\n", "required"},
  };
  for (const auto& wrong : cases) {
    const auto skill = parsed(wrong.text);
    ASSERT_FALSE(skill) << wrong.text;
    EXPECT_NE(skill.error().message.find(wrong.expected), std::string::npos) << skill.error().message;
    EXPECT_EQ(skill.error().message.rfind("show.yaml:", 0), 0u) << skill.error().message;
  }
}

TEST(Skill, RunsWithinItsLimits) {
  if (const Status can = skill_availability(); !can) GTEST_SKIP() << can.error().message;
  const auto run = [](const std::string& argv, const std::string& more) {
    const auto skill = parsed("description: x\nargv: " + argv + "\n" + more);
    EXPECT_TRUE(skill) << skill.error().message;
    return skill ? make_skill(*skill)->run("{}", {}) : ToolResult();
  };
  EXPECT_NE(run("[/usr/bin/sleep, '60']", "seconds: 0.2\n").text.find("no time left"), std::string::npos);
  EXPECT_NE(run("[/usr/bin/yes]", "output_bytes: 1000\n").text.find("more than 1000 bytes"), std::string::npos);
  EXPECT_TRUE(run("[/usr/bin/cat, /etc/passwd]", "").is_error) << "no file of the machine's";
  EXPECT_TRUE(run("[/usr/bin/touch, /usr/x]", "").is_error) << "nothing is written but below /tmp";
  EXPECT_EQ(run("[/usr/bin/env]", "").text.find("CHIMERE"), std::string::npos);
}

class SkillFolderTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  void look() { skills_.refresh(std::chrono::milliseconds(0)); }
  bool has(const std::string& name) const { return box_.find(name) != nullptr; }

  const fs::path folder_ = fixture::scratch_folder();
  Toolbox box_;
  SkillFolder skills_{folder_.string(), box_};
};

TEST_F(SkillFolderTest, FollowsItsFilesAndKeepsTheLastGoodOnes) {
  look();
  EXPECT_TRUE(box_.list().empty());
  write("show.yaml", kShow);
  look();
  ASSERT_TRUE(has("show"));
  EXPECT_EQ(box_.policy("show"), Policy::allow);
  write("show.yaml", "description: broken\nargv: [/usr/bin/printf, '{nothing}']\n");
  look();
  EXPECT_TRUE(has("show"));
  ASSERT_EQ(skills_.problems().size(), 1u);
  EXPECT_NE(skills_.problems().begin()->second.find("show.yaml:2:"), std::string::npos);
  EXPECT_EQ(box_.find("show")->spec().description, "Shows a text.");
  write("show.yaml", "description: another\nargv: [/usr/bin/printf, hello]\n");
  look();
  EXPECT_TRUE(skills_.problems().empty());
  EXPECT_EQ(box_.find("show")->spec().description, "another");
  EXPECT_EQ(box_.policy("show"), Policy::ask);
  fs::remove(folder_ / "show.yaml");
  look();
  EXPECT_FALSE(has("show"));
}

TEST_F(SkillFolderTest, APersonsPolicyOutlivesAChangeOfTheFile) {
  write("show.yaml", kShow);
  look();
  ASSERT_TRUE(box_.set_policy("show", Policy::deny));
  write("show.yaml", std::string(kShow) + "seconds: 3\n");
  look();
  EXPECT_EQ(box_.policy("show"), Policy::deny);
  write("show.yaml", std::string(kShow) + "seconds: 30\n");
  look();
  EXPECT_EQ(box_.policy("show"), Policy::deny);
}

TEST_F(SkillFolderTest, ANameThatIsTakenIsAProblem) {
  const auto skill = parsed(kShow);
  ASSERT_TRUE(skill);
  ASSERT_TRUE(box_.add(make_skill(*skill)));
  write("show.yaml", "description: mine\nargv: [/usr/bin/printf, x]\n");
  look();
  ASSERT_EQ(skills_.problems().size(), 1u);
  EXPECT_EQ(box_.find("show")->spec().description, "Shows a text.");
}

}  // namespace
}  // namespace chimere::tools

// golden_test.cpp  Real templates against Python's jinja2, byte for byte.
//
// tests/golden/templates holds the templates with a free licence, their inputs and the recorded output. With
// CHIMERE_SHARED set, tools/capture_templates.py also records every template of $CHIMERE_SHARED/templates afresh.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "jinja/json.h"
#include "jinja/template.h"

namespace chimere::jinja {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const fs::path kGoldens = fs::path(CHIMERE_TESTS_DIR) / "golden" / "templates";

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::tm frozen_time() {
  std::tm t{};
  t.tm_year = 126;
  t.tm_mon = 0;
  t.tm_mday = 15;
  t.tm_hour = 12;
  t.tm_min = 34;
  t.tm_sec = 56;
  t.tm_wday = 4;
  t.tm_yday = 14;
  return t;
}

Result<Rendered> render_captured(const std::string& source, const std::string& variables) {
  TRY_ASSIGN(const Template parsed, Template::parse(source));
  TRY_ASSIGN(const Value globals, value_from_json(variables, true));
  return parsed.render(globals, Limits{}, frozen_time);
}

void expect_matches(const fs::path& template_path, const fs::path& expected_path, const ordered_json& scenarios) {
  const std::string source = read_file(template_path);
  const ordered_json expected = ordered_json::parse(read_file(expected_path));
  ASSERT_EQ(expected.size(), scenarios.size());
  for (const auto& [name, want] : expected.items()) {
    SCOPED_TRACE(template_path.filename().string() + " / " + name);
    const Result<Rendered> got = render_captured(source, scenarios.at(name).dump());
    if (want.contains("text")) {
      if (!got) {
        ADD_FAILURE() << "failed: " << got.error().message;
        continue;
      }
      EXPECT_EQ(got->text, want["text"].get<std::string>());
      size_t end = 0;
      for (const Span& span : got->spans) {
        EXPECT_EQ(span.begin, end);
        end = span.end;
      }
      EXPECT_EQ(end, got->text.size());
    } else {
      if (got) {
        ADD_FAILURE() << "rendered although Python fails with " << want["error"] << "\n" << got->text;
        continue;
      }
      if (want["raised"].get<bool>()) {
        const std::string message = want["error"].get<std::string>().substr(std::string("Raised: ").size());
        EXPECT_TRUE(got.error().message.ends_with(message)) << got.error().message << "\nwanted: " << message;
      }
    }
  }
}

TEST(JinjaGolden, RepositoryTemplates) {
  const ordered_json scenarios = ordered_json::parse(read_file(kGoldens / "scenarios.json"));
  int n_templates = 0;
  for (const auto& entry : fs::directory_iterator(kGoldens)) {
    if (entry.path().extension() != ".jinja") continue;
    ++n_templates;
    expect_matches(entry.path(), fs::path(entry.path()).replace_extension(".json"), scenarios);
  }
  EXPECT_GE(n_templates, 10);
}

// Small templates that pin down single rules of the language.
TEST(JinjaGolden, Snippets) {
  // Not through a JSON library: an integer beyond 64 bits must arrive as such.
  const Result<Value> data = value_from_json(read_file(kGoldens / "snippets.json"), true);
  ASSERT_TRUE(data) << data.error().message;
  const auto member = [&](std::string_view key) -> const Value& { return *data->dict().find(key); };
  const auto& templates = member("templates").items();
  const auto& expected = member("expected").items();
  ASSERT_EQ(templates.size(), expected.size());
  ASSERT_GT(templates.size(), 150u);
  for (size_t i = 0; i < templates.size(); ++i) {
    SCOPED_TRACE(templates[i].bytes());
    const Result<Template> parsed = Template::parse(templates[i].bytes());
    Result<Rendered> got = Error{Code::internal, ""};
    if (parsed) {
      got = parsed->render(member("variables"), Limits{}, frozen_time);
    }
    if (expected[i].is_none()) {
      EXPECT_FALSE(got) << got->text;
    } else if (!got) {
      ADD_FAILURE() << (parsed ? got.error().message : parsed.error().message);
    } else {
      EXPECT_EQ(got->text, expected[i].bytes());
    }
  }
}

TEST(JinjaGolden, SharedTemplates) {
  const char* shared = std::getenv("CHIMERE_SHARED");
  if (!shared) GTEST_SKIP() << "CHIMERE_SHARED is not set";
  if (std::system("/usr/bin/python3 -c 'import jinja2' 2>/dev/null") != 0) GTEST_SKIP() << "python3-jinja2 is missing";
  const fs::path templates = fs::path(shared) / "templates";
  std::string out = (fs::temp_directory_path() / "chimere-templates-XXXXXX").string();
  ASSERT_NE(mkdtemp(out.data()), nullptr);
  const fs::path script = fs::path(CHIMERE_TESTS_DIR).parent_path() / "tools" / "capture_templates.py";
  const std::string command = "/usr/bin/python3 '" + script.string() + "' '" + (kGoldens / "scenarios.json").string() +
                              "' '" + templates.string() + "' '" + out + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const ordered_json scenarios = ordered_json::parse(read_file(kGoldens / "scenarios.json"));
  int n_templates = 0;
  for (const auto& entry : fs::directory_iterator(templates)) {
    if (entry.path().extension() != ".jinja") continue;
    ++n_templates;
    expect_matches(entry.path(), fs::path(out) / (entry.path().stem().string() + ".json"), scenarios);
  }
  EXPECT_GT(n_templates, 0);
  fs::remove_all(out);
}

}  // namespace
}  // namespace chimere::jinja

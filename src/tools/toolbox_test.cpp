#include "tools/toolbox.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "tools/calculator.h"

namespace chimere::tools {
namespace {

class SpokenTool : public Tool {
 public:
  explicit SpokenTool(std::string name, std::string parameters = R"({"type":"object"})")
      : spec_{std::move(name), "says what it was asked", std::move(parameters)} {}
  const ToolSpec& spec() const override { return spec_; }
  ToolResult run(const std::string& arguments, const ToolContext& context) override {
    if (arguments == R"({"throw":true})") throw std::runtime_error("it threw");
    if (arguments == R"({"long":true})") return {std::string(kMaxResultBytes - 1, 'x') + "éé"};
    if (arguments == R"({"raw":true})") return {"a\xFFz"};
    return {context.owner + arguments};
  }

 private:
  ToolSpec spec_;
};

TEST(Toolbox, FindsListsAndRemovesByName) {
  Toolbox box;
  ASSERT_TRUE(box.add(std::make_shared<SpokenTool>("b")));
  ASSERT_TRUE(box.add(std::make_shared<SpokenTool>("a"), Policy::ask));
  ASSERT_TRUE(box.add(std::make_shared<SpokenTool>("c"), Policy::deny));
  ASSERT_EQ(box.list().size(), 2u);
  EXPECT_EQ(box.list()[0].name, "a");
  ASSERT_EQ(box.denied().size(), 1u);
  EXPECT_EQ(box.denied()[0].name, "c");
  ASSERT_TRUE(box.list({"b", "c"}));
  EXPECT_EQ(box.list({"b", "c"})->size(), 1u);
  EXPECT_EQ(box.list({"nobody"}).error().message, "there is no tool 'nobody'");
  EXPECT_NE(box.find("a"), nullptr);
  EXPECT_TRUE(box.remove("a"));
  EXPECT_FALSE(box.remove("a"));
  EXPECT_EQ(box.find("a"), nullptr);
  EXPECT_EQ(box.policy("a"), Policy::deny);
}

TEST(Toolbox, RefusesToolsThatAreNone) {
  Toolbox box;
  EXPECT_FALSE(box.add(std::make_shared<SpokenTool>("")));
  EXPECT_FALSE(box.add(std::make_shared<SpokenTool>("two words")));
  EXPECT_FALSE(box.add(std::make_shared<SpokenTool>(std::string(65, 'a'))));
  EXPECT_FALSE(box.add(std::make_shared<SpokenTool>("a", "[]")));
  EXPECT_FALSE(box.add(std::make_shared<SpokenTool>("a", "{")));
  EXPECT_FALSE(box.add(std::make_shared<SpokenTool>("a", "{\"x\":\"" + std::string(kMaxSchemaBytes, 'x') + "\"}")));
  ASSERT_TRUE(box.add(std::make_shared<SpokenTool>("a")));
  EXPECT_EQ(box.add(std::make_shared<SpokenTool>("a")).error().message, "there is a tool of the name 'a' already");
  for (size_t i = 1; i < kMaxTools; ++i) ASSERT_TRUE(box.add(std::make_shared<SpokenTool>("t" + std::to_string(i))));
  EXPECT_EQ(box.add(std::make_shared<SpokenTool>("z")).error().code, Code::exhausted);
}

TEST(Toolbox, RunsOnlyWhatThePolicyLets) {
  Toolbox box;
  ASSERT_TRUE(box.add(std::make_shared<SpokenTool>("speak"), Policy::ask));
  EXPECT_TRUE(box.run("speak", "{}", {}).is_error);
  EXPECT_EQ(box.run("speak", "{}", {.owner = "ann", .key = {}}, true).text, "ann{}");
  ASSERT_TRUE(box.set_policy("speak", Policy::deny));
  EXPECT_EQ(box.run("speak", "{}", {}, true).text, "speak: the policy of this tool denies calls");
  ASSERT_TRUE(box.set_policy("speak", Policy::allow));
  EXPECT_FALSE(box.run("speak", "{}", {}).is_error);
  EXPECT_FALSE(box.set_policy("nobody", Policy::allow));
  EXPECT_EQ(box.run("speek", "{}", {}).text, "there is no tool 'speek'; did you mean 'speak'?");
  EXPECT_EQ(*parse_policy("ask"), Policy::ask);
  EXPECT_FALSE(parse_policy("never"));
}

TEST(Toolbox, ChecksArgumentsBeforeItCalls) {
  Toolbox box;
  ASSERT_TRUE(
      box.add(std::make_shared<SpokenTool>("t", R"({"type":"object","required":["path"],"additionalProperties":false,
      "properties":{"path":{"type":"string"},"n":{"type":["integer","null"]},"x":{"type":"number"},
                    "kind":{"enum":["a","b"]},"many":{"type":"array","items":{"type":"boolean"}},
                    "in":{"type":"object","required":["deep"]}}})")));
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"{}", "t: arguments: 'path' is missing"},
      {"", "t: arguments: 'path' is missing"},
      {"[1]", "t: arguments: expected an object, found an array"},
      {R"({"path":3})", "t: arguments.path: expected a string, found an integer"},
      {R"({"path":"p","n":1.5})", "t: arguments.n: expected an integer or null, found a number"},
      {R"({"path":"p","x":"1"})", "t: arguments.x: expected a number, found a string"},
      {R"({"path":"p","kind":"c"})", R"(t: arguments.kind: expected one of ["a","b"], found "c")"},
      {R"({"path":"p","many":[true,1]})", "t: arguments.many[1]: expected a boolean, found an integer"},
      {R"({"path":"p","in":{}})", "t: arguments.in: 'deep' is missing"},
      {R"({"path":"p","kinds":"a"})", "t: arguments: unknown name 'kinds'; did you mean 'kind'?"},
  };
  for (const auto& [arguments, expected] : wrong) {
    const ToolResult result = box.run("t", arguments, {});
    EXPECT_TRUE(result.is_error) << arguments;
    EXPECT_EQ(result.text, expected);
  }
  EXPECT_TRUE(box.run("t", R"({"path":)", {}).is_error);
  EXPECT_TRUE(box.run("t", std::string(200, '['), {}).is_error);
  const std::string right = R"({"path":"p","n":2.0,"x":1,"kind":"a","many":[true],"in":{"deep":1}})";
  EXPECT_EQ(box.run("t", right, {}).text, right);
}

TEST(Toolbox, NothingAToolDoesComesThroughAsAnythingButAResult) {
  Toolbox box;
  ASSERT_TRUE(box.add(std::make_shared<SpokenTool>("t")));
  const ToolResult thrown = box.run("t", R"({"throw":true})", {});
  EXPECT_TRUE(thrown.is_error);
  EXPECT_EQ(thrown.text, "t: it threw");
  const ToolResult cut = box.run("t", R"({"long":true})", {});
  EXPECT_EQ(cut.text, std::string(kMaxResultBytes - 1, 'x') + "\n[cut: 4 more bytes]");
  EXPECT_EQ(box.run("t", R"({"raw":true})", {}).text, "a\xEF\xBF\xBDz");
  ToolContext late;
  late.deadline = std::chrono::steady_clock::now();
  EXPECT_EQ(box.run("t", "{}", late).text, "t: there was no time left for the call");
  ToolContext cancelled;
  cancelled.is_cancelled = [] { return true; };
  EXPECT_EQ(box.run("t", "{}", cancelled).text, "t: the call was cancelled before it began");
}

TEST(Toolbox, ToolsComeAndGoWhileOthersRun) {
  Toolbox box;
  ASSERT_TRUE(box.add(make_calculator()));
  std::thread changes([&] {
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(box.add(std::make_shared<SpokenTool>("guest")));
      ASSERT_TRUE(box.set_policy("calculator", Policy::allow));
      ASSERT_TRUE(box.remove("guest"));
    }
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(box.run("calculator", R"({"expression":"6*7"})", {}).text, "42");
    box.run("guest", "{}", {});
    box.list();
  }
  changes.join();
}

TEST(Calculator, AnswersACall) {
  Toolbox box;
  ASSERT_TRUE(box.add(make_calculator()));
  EXPECT_EQ(box.run("calculator", R"({"expression":"(317 + 482) × 3"})", {}).text, "2397");
  EXPECT_TRUE(box.run("calculator", R"({"expression":"1/0"})", {}).is_error);
  EXPECT_TRUE(box.run("calculator", R"({"expresion":"1"})", {}).is_error);
}

}  // namespace
}  // namespace chimere::tools

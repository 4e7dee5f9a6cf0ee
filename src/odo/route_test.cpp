#include "odo/route.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/scratch_for_test.h"
#include "odo/route_folder.h"

namespace chimere::odo {
namespace {

Result<Route> route_of(const std::string& text) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, "code.yaml"));
  return read_route(root, "code", "code.yaml");
}

TEST(RouteTest, EveryKey) {
  const auto route = route_of(R"(
title: Programs
system_prompt: Answer with code.
tools: [run_code, "files__*"]
collections: handbook
web: true
params: {temperature: 0.2, top_p: 0.9, top_k: 20, min_p: 0.05, presence_penalty: 0.5, max_tokens: 900}
thinking: {enabled: false, mode: quality, budget: 300}
engram: {tables: [code], alpha: 0.5}
lora: {name: coder, scale: 0.8}
pipeline_auto: yes
search: {kind: dvts, branches: 3, width: 4, tokens: 900}
gate: true
few_shot: 2
source_weight: 0.5
steps:
  - {agent: plan, prompt: Plan it., iterations: 2}
  - parallel:
    - {agent: tests, prompt: Write tests., tools: []}
    - {agent: code, prompt: Write it., params: {temperature: 0}}
)");
  ASSERT_TRUE(route) << route.error().message;
  EXPECT_EQ(route->title, "Programs");
  EXPECT_EQ(route->effort.search, SearchKind::dvts);
  EXPECT_EQ(route->effort.branches, 3);
  EXPECT_EQ(route->effort.width, 4);
  EXPECT_EQ(route->effort.tokens, 900);
  EXPECT_EQ(route->effort.gate, true);
  EXPECT_EQ(route->effort.few_shot, 2);
  EXPECT_EQ(route->effort.source_weight, 0.5f);
  EXPECT_EQ(route->tools, (std::vector<std::string>{"run_code", "files__*"}));
  EXPECT_EQ(route->collections, std::vector<std::string>{"handbook"});
  EXPECT_TRUE(route->searches && route->is_automatic);
  EXPECT_FLOAT_EQ(route->wishes.temperature.value_or(9), 0.2f);
  EXPECT_EQ(route->wishes.max_tokens, 900);
  EXPECT_EQ(route->wishes.thinking, false);
  EXPECT_EQ(route->wishes.thinking_limit, 300);
  EXPECT_EQ(route->wishes.tables->front().name, "code");
  EXPECT_EQ(route->wishes.adapters->front().name, "coder");
  ASSERT_EQ(route->steps.size(), 3u);
  EXPECT_EQ(route->steps[0].iterations, 2);
  EXPECT_FALSE(route->steps[0].tools);
  EXPECT_TRUE(route->steps[1].tools && route->steps[1].tools->empty());
  EXPECT_NE(route->steps[0].group, route->steps[1].group);
  EXPECT_EQ(route->steps[1].group, route->steps[2].group);
  EXPECT_FLOAT_EQ(route->steps[2].wishes.temperature.value_or(9), 0);
}

TEST(RouteTest, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"titel: x\n", "code.yaml:1:1: 'titel' is not known here; did you mean `title`?"},
      {"params: {temprature: 1}\n", "did you mean `temperature`?"},
      {"params: {temperature: 5}\n", "expected a number from 0"},
      {"thinking: {mode: slow}\n", "expected off, fast, quality or ultra, found 'slow'"},
      {"steps: {agent: x}\n", "steps: expected a list, found a map"},
      {"steps: [{agent: x}]\n", "expected `prompt`"},
      {"steps: [{prompt: x}]\n", "expected `agent`"},
      {"steps: [{agent: x, prompt: y, iterations: 100}]\n", "from 1 to 8"},
      {"lora: {scale: 1}\n", "expected `name`"},
      {"web: perhaps\n", "expected true or false"},
      {"search: {kind: deep}\n", "expected `kind`: dvts, best_of, majority or none, found 'deep'"},
      {"search: {kind: dvts, branches: 99}\n", "from 1 to 16"},
      {"few_shot: 9\n", "from 0 to 8"},
      {"source_weight: 2\n", "expected a number from 0"},
  };
  for (const auto& [text, expected] : cases) {
    const auto route = route_of(text);
    ASSERT_FALSE(route) << text;
    EXPECT_NE(route.error().message.find(expected), std::string::npos) << route.error().message;
  }
  std::string many = "steps:\n";
  for (int i = 0; i < 17; ++i) many += "  - {agent: a, prompt: b}\n";
  EXPECT_FALSE(route_of(many));
  EXPECT_FALSE(is_route_name("fast"));
  EXPECT_FALSE(is_route_name("../x"));
  EXPECT_TRUE(is_route_name("my-route_2"));
}

class RouteFolderTest : public testing::Test {
 protected:
  void write(const std::string& folder, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(scratch_ / folder);
    std::ofstream(scratch_ / folder / name) << text;
  }
  std::vector<std::string> folders() const { return {(scratch_ / "box").string(), (scratch_ / "mine").string()}; }

  const std::filesystem::path scratch_ = fixture::scratch_folder();
};

TEST_F(RouteFolderTest, OwnFilesStandBeforeThoseOfTheBox) {
  write("box", "code.yaml", "title: Box\n");
  write("box", "law.yaml", "title: Law\n");
  write("mine", "code.yaml", "title: Mine\n");
  write("mine", "fast.yaml", "title: A mode\n");
  write("mine", "notes.txt", "no route\n");
  RouteFolder routes(folders());
  const auto set = routes.routes();
  EXPECT_EQ(set->names(), "code, default, law");
  EXPECT_EQ(set->at_or_default("code").title, "Mine");
  EXPECT_EQ(set->at_or_default("nothing").name, "default");
  EXPECT_EQ(set->problems.size(), 1u);
}

TEST_F(RouteFolderTest, AChangedFileIsReadAgainAndABrokenOneKeepsItsLastGoodVersion) {
  write("mine", "code.yaml", "title: One\n");
  RouteFolder routes(folders());
  EXPECT_EQ(routes.routes()->at_or_default("code").title, "One");
  const auto wait_for = [&](auto is_so) {
    for (int i = 0; i < 500 && !is_so(*routes.routes()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(is_so(*routes.routes()));
  };
  write("mine", "code.yaml", "title: Number two\n");
  wait_for([](const RouteSet& set) { return set.at_or_default("code").title == "Number two"; });
  write("mine", "code.yaml", "title: [broken\n");
  wait_for([](const RouteSet& set) { return !set.problems.empty(); });
  EXPECT_EQ(routes.routes()->at_or_default("code").title, "Number two");
  std::filesystem::remove(scratch_ / "mine" / "code.yaml");
  wait_for([](const RouteSet& set) { return set.routes.count("code") == 0; });
}

}  // namespace
}  // namespace chimere::odo

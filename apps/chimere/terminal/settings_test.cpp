#include "terminal/settings.h"

#include <gtest/gtest.h>

namespace chimere::apps {
namespace {

const std::vector<KnownOption> kKnown = {
    {"port", false, false}, {"rate-limit", false, false}, {"cors", true, false}, {"api-key", true, true}};

std::vector<GivenOption> read(const std::string& text) {
  auto settings = settings_of_yaml(text, "c.yaml", kKnown);
  EXPECT_TRUE(settings) << settings.error().message;
  return settings ? settings->settings : std::vector<GivenOption>();
}

std::string refusal(const std::string& text) {
  const auto settings = settings_of_yaml(text, "c.yaml", kKnown);
  EXPECT_FALSE(settings) << text;
  return settings ? "" : settings.error().message;
}

TEST(Settings, AFileNamesOptionsAsTheCommandLineDoes) {
  const auto settings = read("# a comment\nport: 9000\ncors:\n  - https://a.example\n  - https://b.example\n");
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0].name, "port");
  EXPECT_EQ(settings[0].values, std::vector<std::string>{"9000"});
  EXPECT_EQ(settings[0].place, "c.yaml:2:1");
  EXPECT_EQ(settings[1].values, (std::vector<std::string>{"https://a.example", "https://b.example"}));
}

TEST(Settings, AnEmptyFileSaysNothing) {
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read("# port: 9000\n").empty());
}

TEST(Settings, WhatIsWrongHasItsPlaceAndTheNearestName) {
  EXPECT_EQ(refusal("port: 1\nrate-limits: 5\n"),
            "c.yaml:2:1: 'rate-limits' is no option of `chimere serve`; did you mean `rate-limit`?");
  EXPECT_EQ(refusal("rate_limit: 5\n"),
            "c.yaml:1:1: 'rate_limit' is no option of `chimere serve`; did you mean `rate-limit`?");
  EXPECT_EQ(refusal("something: 5\n"), "c.yaml:1:1: 'something' is no option of `chimere serve`");
  EXPECT_EQ(refusal("port: [1, 2]\n"), "c.yaml:1:7: port: expected a value, found a list");
  EXPECT_NE(refusal("cors: [{a: b}]\n").find("c.yaml:1:8: cors: expected a value or a list of values, found a map"),
            std::string::npos);
  EXPECT_NE(refusal("cors: []\n").find("found a list"), std::string::npos);
  EXPECT_NE(refusal("port:\n").find("found nothing"), std::string::npos);
  EXPECT_NE(refusal("- port\n").find("expected lines `option: value`"), std::string::npos);
  EXPECT_NE(refusal("port: 1\nport: 2\n").find("c.yaml:2"), std::string::npos);
  EXPECT_NE(refusal("[serve]\nport=1\n").find("c.yaml:"), std::string::npos);
}

TEST(Settings, AFileNamesOptionsOfSingleModels) {
  const auto found = settings_of_yaml("port: 1\nmodel-options:\n  a:\n    ctx: 8\ncors: [x]\n", "c.yaml", kKnown);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->settings.size(), 2u);
  ASSERT_EQ(found->models.size(), 1u);
  EXPECT_EQ(found->models[0].name, "a");
  EXPECT_EQ(found->models[0].options[0].place, "c.yaml:4:5");
  EXPECT_EQ(refusal("model-option:\n  a: {ctx: 1}\n"),
            "c.yaml:1:1: 'model-option' is no option of `chimere serve`; did you mean `model-options`?");
  EXPECT_EQ(refusal("model-options: 3\n"),
            "c.yaml:1:16: model-options: expected names of models, and below each its options, found '3'");
  EXPECT_EQ(refusal("model-options:\n  a: 3\n"), "c.yaml:2:6: a: expected lines `option: value`, found '3'");
}

TEST(Settings, VariablesAreOptionsInCapitals) {
  EXPECT_EQ(variable_of("rate-limit"), "CHIMERE_RATE_LIMIT");
  const auto found = settings_of_environment({{"CHIMERE_RATE_LIMIT", "5"},
                                              {"CHIMERE_CORS", "https://a.example,https://b.example"},
                                              {"CHIMERE_API_KEY", "one,key"},
                                              {"CHIMERE_PORT", ""},
                                              {"CHIMERE_HOME", "/somewhere"},
                                              {"CHIMERE_PROT", "1"},
                                              {"OTHER", "1"}},
                                             kKnown);
  ASSERT_EQ(found.settings.size(), 3u);
  EXPECT_EQ(found.settings[0].place, "CHIMERE_RATE_LIMIT");
  EXPECT_EQ(found.settings[1].values.size(), 2u);
  EXPECT_EQ(found.settings[2].values, std::vector<std::string>{"one,key"});
  ASSERT_EQ(found.strangers.size(), 1u);
  EXPECT_NE(found.strangers[0].find("did you mean `CHIMERE_PORT`?"), std::string::npos);
}

TEST(Settings, TheFirstThatSpeaksWins) {
  const std::vector<GivenOption> line = {{"port", {"1"}, "the command line"}};
  const std::vector<GivenOption> variables = {{"port", {"2"}, "CHIMERE_PORT"}, {"cors", {"a"}, "CHIMERE_CORS"}};
  const std::vector<GivenOption> file = {{"cors", {"b", "c"}, "f:1:1"}, {"rate-limit", {"3"}, "f:2:1"}};
  const auto won = winners({&line, &variables, &file});
  ASSERT_EQ(won.size(), 3u);
  EXPECT_EQ(won[0].place, "CHIMERE_CORS");
  EXPECT_EQ(won[0].values, std::vector<std::string>{"a"});
  EXPECT_EQ(won[1].place, "the command line");
  EXPECT_EQ(won[2].place, "f:2:1");
}

TEST(Settings, WhatIsShownCanBeReadAgain) {
  for (const std::vector<std::string>& values : {std::vector<std::string>{"plain"},
                                                 {"with space"},
                                                 {""},
                                                 {"null"},
                                                 {"a: b"},
                                                 {"\"quoted\" \\ \n"},
                                                 {"-x"},
                                                 {"a,b", "c"},
                                                 {"# none"},
                                                 {"été"}}) {
    const auto again = read("cors: " + yaml_of(values) + "  # a comment\n");
    ASSERT_EQ(again.size(), 1u) << yaml_of(values);
    EXPECT_EQ(again[0].values, values) << yaml_of(values);
  }
}

}  // namespace
}  // namespace chimere::apps

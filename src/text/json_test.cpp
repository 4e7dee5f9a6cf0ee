// json_test.cpp  The limits of the reader, and where it finds a mistake.
#include "text/json.h"

#include <gtest/gtest.h>

namespace chimere {
namespace {

TEST(Json, LimitsDepthBeforeParsing) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')));
  const auto deep = parse_json(std::string(65, '[') + std::string(65, ']'));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().message, "JSON: expected at most 64 nested arrays and objects, found more");
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
  EXPECT_TRUE(parse_json("\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\""));
}

TEST(Json, LimitsTheKeysOfObjects) {
  auto object = [](int keys) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += "\"" + std::to_string(i) + "\":0,";
    text.back() = '}';
    return text;
  };
  EXPECT_TRUE(parse_json(object(2000)));
  EXPECT_FALSE(parse_json(object(20'000)));
}

TEST(Json, SaysWhereItIsMalformed) {
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "nul", "{} x", "\"\\ud800\"", "\"\xff\"", "1e999"}) {
    const auto json = parse_json(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().message.rfind("JSON: ", 0), 0u) << json.error().message;
  }
}

TEST(Json, WritesBytesThatAreNoUtf8AsReplacement) { EXPECT_EQ(to_text(Json("a\xff")), "\"a\uFFFD\""); }

TEST(Json, LargeValuesAreTakenApartFromTheirLeaves) {
  auto parsed = parse_json(R"({"a":[1,2,[3,{"b":[[],{}]}]],"c":{"d":"text","e":null}})");
  ASSERT_TRUE(parsed);
  Json json = *parsed;
  take_apart(json);
  EXPECT_EQ(json, Json::object());
  Json number = 7;
  take_apart(number);
  EXPECT_EQ(number, 7);
  OwnedJson owned(std::move(*parsed));
  EXPECT_EQ(owned["a"].size(), 3u);
  const OwnedJson moved(std::move(owned));
  EXPECT_EQ(moved["c"]["d"], "text");
}

}  // namespace
}  // namespace chimere

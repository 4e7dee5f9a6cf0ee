// json_stream_test.cpp  JSON read before it is complete.
#include "chat/json_stream.h"

#include <gtest/gtest.h>

namespace chimere::chat {
namespace {

std::string copy_of(std::string_view text, size_t* used = nullptr) {
  JsonCopy copy;
  std::string out;
  const size_t n = copy.read(text, out);
  if (used) *used = n;
  return out + (copy.is_complete() ? "" : "...");
}

TEST(JsonCopy, LeavesOutSpaceAndStopsAtTheEnd) {
  size_t used = 0;
  EXPECT_EQ(copy_of("{ \"a b\" : [1, 2.50 ,\n{} ] } tail", &used), R"({"a b":[1,2.50,{}]})");
  EXPECT_EQ(used, std::string_view("{ \"a b\" : [1, 2.50 ,\n{} ] }").size());
  EXPECT_EQ(copy_of(R"({"a": "} \" )"), R"({"a":"} \" ...)");
  EXPECT_EQ(copy_of("{\"a\": 1 2}"), R"({"a":1 2})");
}

TEST(JsonCallHead, SaysWhereArgumentsBegin) {
  using Kind = JsonCallHead::Kind;
  const auto head = [](const std::string& text) { return read_call_head(text); };
  const std::string found = R"( {"id": [1, {"x": "}"}], "name": "a\"b", "arguments": {)";
  EXPECT_EQ(head(found).kind, Kind::incomplete);
  EXPECT_EQ(head(found + "\"").kind, Kind::found);
  EXPECT_EQ(head(found + "\"").name, "a\"b");
  EXPECT_EQ(head(found + "}").arguments_begin, found.size() - 1);
  for (size_t n = 0; n < found.size(); ++n) EXPECT_EQ(head(found.substr(0, n)).kind, Kind::incomplete) << n;
  for (const char* text : {R"({"arguments": {)", R"({"name": 3)", R"({"name": "a"})", R"({"name": "a", "arguments": [)",
                           R"({"name": "a", "arguments": {no)", R"([)", R"({"name": "a", "arguments": "{)"}) {
    EXPECT_EQ(head(text).kind, Kind::whole) << text;
  }
  EXPECT_EQ(read_call_head("{\"x", "f").kind, Kind::found);
  EXPECT_EQ(read_call_head(" {", "f").kind, Kind::incomplete);
  EXPECT_EQ(read_call_head("[", "f").kind, Kind::whole);
  // A head that never comes is not looked for again with every piece.
  EXPECT_EQ(head("{\"x\": \"" + std::string(5000, 'x')).kind, Kind::whole);
}

TEST(ClosedJson, SavesWhatThereIs) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"a": "x)", R"({"a": "x"})"},
      {R"({"a": "x\)", R"({"a": "x"})"},
      {R"({"a": "x\u00)", R"({"a": "x"})"},
      {R"({"a": [1, {"b": 2)", R"({"a": [1, {"b": 2}]})"},
      {R"({"a": 1, "b)", R"({"a": 1})"},
      {R"({"a": 1, "b": tr)", R"({"a": 1})"},
      {R"({"a": 1,)", R"({"a": 1})"},
      {R"({"a": {"b":)", R"({"a": {}})"},
      {R"({"a")", "{}"},
      {R"({"a": 1})", R"({"a": 1})"},
      {"", "{}"},
      {"nonsense", "{}"},
      {"[1", "{}"},
  };
  for (const auto& [cut, whole] : cases) EXPECT_EQ(closed_json(cut), whole) << cut;
}

}  // namespace
}  // namespace chimere::chat

#include "odo/tool_cues.h"

#include <gtest/gtest.h>

namespace chimere::odo {
namespace {

TEST(ToolCuesTest, SumsAndDatesAreHeard) {
  const std::vector<std::string> tools = {"calculator", "clock"};
  const std::vector<std::string> sums = {"calculator"}, dates = {"clock"}, none = {};
  for (const char* text : {"What is 12 * 7?", "3^4", "15 % of 80", "(12+3)*4", "12 × 7", "Combien font 123 fois 45 ?",
                           "What is 482 plus 394 minus 17?", "7 ÷ 2", "100-58"}) {
    EXPECT_EQ(cued_tools(text, tools), sums) << text;
  }
  for (const char* text :
       {"What day is it?", "What time is it in Paris?", "Quel jour sommes-nous ?", "How many days until Christmas?"}) {
    EXPECT_EQ(cued_tools(text, tools), dates) << text;
  }
  for (const char* text :
       {"Hello", "Bonjour !", "Tell me about the year 1999.", "Write a poem of 4 lines.", "Who wrote 1984?",
        "Explain HTTP/2.", "C++ or Rust?", "", "I have 12 apples and eat 5. How many are left?",
        "Chaque boîte a 6 œufs. Combien dans 7 boîtes ?"}) {
    EXPECT_EQ(cued_tools(text, tools), none) << text;
  }
  EXPECT_EQ(cued_tools("What is 12 * 7?", {"web_search"}), none);
  EXPECT_EQ(cued_tools(std::string(1 << 20, '1') + " + 2", tools), sums);
}

}  // namespace
}  // namespace chimere::odo

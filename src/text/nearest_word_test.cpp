#include "text/nearest_word.h"

#include <gtest/gtest.h>

namespace chimere {
namespace {

TEST(NearestWord, FindsWhatWasMeant) {
  const std::vector<std::string> commands = {"serve", "chat", "inspect", "convert", "bench", "keys"};
  EXPECT_EQ(nearest_word("sevre", commands), "serve");
  EXPECT_EQ(nearest_word("serv", commands), "serve");
  EXPECT_EQ(nearest_word("caht", commands), "chat");
  EXPECT_EQ(nearest_word("benhc", commands), "bench");
  EXPECT_EQ(nearest_word("kubernetes", commands), "");
  EXPECT_EQ(nearest_word("", commands), "");
  EXPECT_EQ(nearest_word(std::string(100000, 'x'), commands), "");
  EXPECT_EQ(letters_between("abc", "acb"), 1);
  EXPECT_EQ(letters_between("", "abc"), 3);
}

}  // namespace
}  // namespace chimere

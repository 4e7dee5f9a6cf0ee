#include "documents/sentences.h"

#include <gtest/gtest.h>

namespace chimere::documents {
namespace {

using Texts = std::vector<std::string_view>;

TEST(Sentences, EndAtMarksAndLines) {
  EXPECT_EQ(sentences_of(""), Texts{});
  EXPECT_EQ(sentences_of(" \n\n"), Texts{});
  EXPECT_EQ(sentences_of("No end"), Texts{"No end"});
  EXPECT_EQ(sentences_of("First. Two!  Three? Four"), (Texts{"First.", "Two!", "Three?", "Four"}));
  EXPECT_EQ(sentences_of("a list\n- of two\n\n"), (Texts{"a list", "- of two"}));
  EXPECT_EQ(sentences_of("It is 3.5 m of file.txt long. Yes."), (Texts{"It is 3.5 m of file.txt long.", "Yes."}));
  EXPECT_EQ(sentences_of("Mrs. Hall met J. Orlin. He sang."), (Texts{"Mrs. Hall met J. Orlin.", "He sang."}));
  EXPECT_EQ(sentences_of("\u65e5\u3002\u672c\uff1f"), (Texts{"\u65e5\u3002", "\u672c\uff1f"}));
  EXPECT_EQ(sentences_of("\xff. \xe3\x80"), (Texts{"\xff.", "\xe3\x80"}));
}

}  // namespace
}  // namespace chimere::documents

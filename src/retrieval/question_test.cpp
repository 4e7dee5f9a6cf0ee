#include "retrieval/question.h"

#include <gtest/gtest.h>

namespace chimere::retrieval {
namespace {

using Texts = std::vector<std::string_view>;

float equally_rare_word(std::string_view) { return 1; }

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

TEST(NearestSentence, HasMostOfWhatIsAsked) {
  const std::vector<std::string> texts = {
      "The Brindle bridge crosses the Osska. It was built in 1874. The bridge is closed on Mondays.",
      "The museum is closed on Sundays."};
  EXPECT_EQ(nearest_sentence("When is the Brindle bridge closed?", texts, equally_rare_word),
            "The bridge is closed on Mondays.");
  EXPECT_EQ(nearest_sentence("When was the Brindle bridge built?", texts, equally_rare_word), "It was built in 1874.");
  EXPECT_EQ(nearest_sentence("What does the Brindle bridge cross?", texts, equally_rare_word),
            "The Brindle bridge crosses the Osska.");
  EXPECT_EQ(nearest_sentence("Is the museum closed?", texts, equally_rare_word), "The museum is closed on Sundays.");
  EXPECT_EQ(nearest_sentence("What does it cost?", texts, equally_rare_word), "");
  EXPECT_EQ(nearest_sentence("Where?", {}, equally_rare_word), "");
}

}  // namespace
}  // namespace chimere::retrieval

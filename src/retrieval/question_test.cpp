#include "retrieval/question.h"

#include <gtest/gtest.h>

namespace chimere::retrieval {
namespace {

float equally_rare_word(std::string_view) { return 1; }

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

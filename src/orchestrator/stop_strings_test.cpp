// stop_strings_test.cpp  Stop strings against a naive twin that sees the whole text.
#include "orchestrator/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace chimere::orchestrator {
namespace {

struct Streamed {
  std::string text;
  bool hit;
};

Streamed stream(const std::vector<std::string>& stops, const std::string& text, size_t piece) {
  StopStrings filter(stops);
  std::string out;
  for (size_t i = 0; i < text.size(); i += piece) out += filter.push(std::string_view(text).substr(i, piece));
  out += filter.finish();
  return {out, filter.hit()};
}

// Grows the text byte by byte until it ends in a stop string; the longest such one is cut off.
Streamed naive(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t n = 1; n <= text.size(); ++n) {
    size_t cut = 0;
    for (const std::string& stop : stops) {
      if (!stop.empty() && n >= stop.size() && text.compare(n - stop.size(), stop.size(), stop) == 0) {
        cut = std::max(cut, stop.size());
      }
    }
    if (cut) return {text.substr(0, n - cut), true};
  }
  return {text, false};
}

TEST(StopStrings, HoldsBackOnlyWhatCouldBecomeAStop) {
  StopStrings filter({"END"});
  EXPECT_EQ(filter.push("one E"), "one ");
  EXPECT_EQ(filter.push("N"), "");
  EXPECT_EQ(filter.push("T"), "ENT");
  EXPECT_EQ(filter.push("ER EN"), "ER ");
  EXPECT_EQ(filter.push("D and more"), "");
  EXPECT_TRUE(filter.hit());
  EXPECT_EQ(filter.matched(), "END");
  EXPECT_EQ(filter.push("nothing"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopStrings, ReleasesAPartialMatchAtTheEnd) {
  StopStrings filter({"\n\nUser:"});
  EXPECT_EQ(filter.push("answer\n\nUs"), "answer");
  EXPECT_EQ(filter.finish(), "\n\nUs");
  EXPECT_FALSE(filter.hit());
}

TEST(StopStrings, NoneLetsEverythingThroughAtOnce) {
  StopStrings filter({""});
  EXPECT_EQ(filter.push("text"), "text");
  EXPECT_FALSE(filter.hit());
}

TEST(StopStrings, SameAsTheNaiveTwinForAnyPieces) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    auto word = [&](size_t longest) {
      std::string w(random() % longest, 'a');
      for (char& c : w) c = static_cast<char>('a' + random() % 2);
      return w;
    };
    std::vector<std::string> stops;
    for (size_t i = random() % 4; i > 0; --i) stops.push_back(word(6));
    const std::string text = word(24);
    const Streamed expected = naive(stops, text);
    for (size_t piece : {1, 2, 3, 5, 24}) {
      const Streamed found = stream(stops, text, piece);
      ASSERT_EQ(found.text, expected.text) << "round " << round << " text " << text << " pieces of " << piece;
      ASSERT_EQ(found.hit, expected.hit);
    }
  }
}

}  // namespace
}  // namespace chimere::orchestrator

// chunks_test.cpp  Where text is cut, and BM25 by its formula.
#include "web/chunks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "text/utf8.h"

namespace chimere::web {
namespace {

TEST(Chunks, ParagraphsStayWholeAndHeadingsStayWithTheirText) {
  ChunkSizes sizes;
  sizes.bytes = 100;
  sizes.overlap = 30;
  EXPECT_EQ(chunk_text("one\n\ntwo", sizes), std::vector<std::string>{"one\n\ntwo"});
  EXPECT_TRUE(chunk_text("", sizes).empty());
  EXPECT_TRUE(chunk_text("\n\n  \n", sizes).empty());
  const std::string first(60, 'a'), second(70, 'b');
  const auto sections = chunk_text("# One\n\n" + first + ".\n\n# Two\n\n" + second, sizes);
  EXPECT_EQ(sections, (std::vector<std::string>{"# One\n\n" + first + ".", "# Two\n\n" + second}));

  std::string long_paragraph;
  for (int i = 0; i < 40; ++i) long_paragraph += "Sentence number " + std::to_string(i) + ". ";
  const auto chunks = chunk_text(long_paragraph, sizes);
  ASSERT_GT(chunks.size(), 6u);
  for (size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_LE(chunks[i].size(), sizes.bytes + sizes.overlap + 1) << chunks[i];
    EXPECT_EQ(chunks[i].substr(0, 8), "Sentence");
    EXPECT_EQ(chunks[i].back(), '.');
    // The last sentence of the one before comes again.
    if (i > 0) {
      EXPECT_NE(chunks[i - 1].find(chunks[i].substr(0, chunks[i].find('\n'))), std::string::npos);
    }
  }
  // Every sentence is somewhere.
  std::string all;
  for (const std::string& chunk : chunks) all += chunk + "\n";
  for (int i = 0; i < 40; ++i) EXPECT_NE(all.find("number " + std::to_string(i) + "."), std::string::npos) << i;
  sizes.max_chunks = 3;
  EXPECT_EQ(chunk_text(long_paragraph, sizes).size(), 3u);
}

TEST(Chunks, NothingIsTornInsideACharacter) {
  ChunkSizes sizes;
  sizes.bytes = 50;
  sizes.overlap = 10;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "\u65E5";
  for (const std::string& chunk : chunk_text(text, sizes)) {
    EXPECT_TRUE(is_valid_utf8(chunk));
    EXPECT_LE(chunk.size(), 61u);
  }
}

// The formula written out for one word, and the order of texts that share more or rarer words with a question.
TEST(Chunks, Bm25) {
  const std::vector<std::string_view> texts = {"the otter lives in rivers", "the river is long",
                                               "the tower the tower the tower",
                                               "Otters eat fish, and otters swim in rivers"};
  const auto scores = bm25_scores("Where do OTTERS live? rivers", texts);
  EXPECT_GT(scores[3], scores[0]);
  EXPECT_EQ(scores[2], 0);
  EXPECT_EQ(scores[1], 0);  // "river" is not "rivers"
  const auto one = bm25_scores("tower", texts);
  const double weight = std::log(1 + (4 - 1 + 0.5) / 1.5), norm = 1.2 * (0.25 + 0.75 * 6 / ((5 + 4 + 6 + 8) / 4.0));
  EXPECT_NEAR(one[2], weight * 3 * 2.2 / (3 + norm), 1e-12);
  EXPECT_GT(bm25_scores("\u6771\u4EAC", {"\u6771\u4EAC\u306F", "\u5927\u962A\u306F"})[0], 0);
  EXPECT_TRUE(bm25_scores("x", {}).empty());
  EXPECT_EQ(bm25_scores("", {"a"})[0], 0);
}

}  // namespace
}  // namespace chimere::web

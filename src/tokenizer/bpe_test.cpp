// bpe_test.cpp  Merging against a naive twin, on words short and long.
#include "tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tokenizer/vocab_for_test.h"

namespace chimere::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

// Lowest rank first, leftmost first, on strings. The texts here are ASCII letters, their own stand-ins.
Ids naive(const TestVocab& vocab, const std::string& word) {
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (size_t i = 0; i < vocab.merges.size(); ++i) {
    const size_t space = vocab.merges[i].find(' ', 1);
    ranks.emplace(std::pair(vocab.merges[i].substr(0, space), vocab.merges[i].substr(space + 1)), i);
  }
  std::vector<std::string> parts;
  for (const char c : word) parts.emplace_back(1, c);
  for (;;) {
    size_t best = parts.size();
    size_t best_rank = vocab.merges.size();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find({parts[i], parts[i + 1]});
      if (found != ranks.end() && found->second < best_rank) {
        best = i;
        best_rank = found->second;
      }
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) {
    ids.push_back(
        static_cast<int32_t>(std::find(vocab.tokens.begin(), vocab.tokens.end(), part) - vocab.tokens.begin()));
  }
  return ids;
}

TEST(Bpe, EqualsTheNaiveTwin) {
  std::mt19937 random(17);
  for (int round = 0; round < 40; ++round) {
    // Merges of random known texts in random order: also such as no training would give, where a merge comes before
    // one that makes its parts.
    TestVocab vocab = TestVocab::bpe("gpt-2");
    std::vector<std::string> texts = {"a", "b", "c"};
    for (int i = 0; i < 30; ++i) {
      const std::string left = texts[random() % texts.size()];
      const std::string right = texts[random() % texts.size()];
      if (std::find(texts.begin(), texts.end(), left + right) != texts.end()) continue;
      texts.push_back(left + right);
      vocab.add(left + right);
      vocab.merges.insert(vocab.merges.begin() + random() % vocab.merges.size(), left + " " + right);
    }
    const auto metadata = vocab.metadata();
    const auto described = Vocab::from_metadata(metadata);
    ASSERT_TRUE(described);
    const auto bpe = Bpe::from_metadata(metadata, *described);
    ASSERT_TRUE(bpe);
    for (const size_t length : {1, 2, 3, 7, 20, 47, 48, 49, 100, 300}) {
      std::string word;
      while (word.size() < length) word += "abc"[random() % (1 + random() % 3)];
      Ids ids;
      bpe->encode(word, ids);
      EXPECT_EQ(ids, naive(vocab, word)) << "round " << round << " " << word;
    }
  }
}

TEST(Bpe, RepeatedWordsOfALongTextComeFromTheCacheUnchanged) {
  const auto metadata = TestVocab::bpe().metadata();
  const auto vocab = Vocab::from_metadata(metadata);
  ASSERT_TRUE(vocab);
  const auto bpe = Bpe::from_metadata(metadata, *vocab);
  ASSERT_TRUE(bpe);
  Ids expected;
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    const std::string word = " hell" + std::string(static_cast<size_t>(i) % 40, static_cast<char>('a' + i % 7));
    bpe->encode(word, expected);
    text += word;
  }
  Ids ids;
  bpe->encode(text, ids);
  EXPECT_EQ(ids, expected);
}

TEST(Bpe, WholeWordsGoBeforeMergesWhereThePreTokenizerSaysSo) {
  for (const auto& [pre, n] : {std::pair("llama-bpe", 1u), std::pair("gpt-2", 3u)}) {
    TestVocab vocab = TestVocab::bpe(pre);
    vocab.add("xyz");  // no merge leads to it
    const auto metadata = vocab.metadata();
    const auto described = Vocab::from_metadata(metadata);
    ASSERT_TRUE(described);
    const auto bpe = Bpe::from_metadata(metadata, *described);
    ASSERT_TRUE(bpe);
    Ids ids;
    bpe->encode("xyz", ids);
    EXPECT_EQ(ids.size(), n) << pre;
  }
}

TEST(Bpe, HostileLengthsStayNearLinear) {
  const auto metadata = TestVocab::bpe().metadata();
  const auto vocab = Vocab::from_metadata(metadata);
  ASSERT_TRUE(vocab);
  const auto bpe = Bpe::from_metadata(metadata, *vocab);
  ASSERT_TRUE(bpe);
  Ids ids;
  bpe->encode(std::string(1 << 20, 'a'), ids);  // minutes if a quadratic loop were used
  EXPECT_EQ(ids.size(), size_t{1} << 18);
}

}  // namespace
}  // namespace chimere::tokenizer

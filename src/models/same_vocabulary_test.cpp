// same_vocabulary_test.cpp  Vocabularies are compared token by token, and what differs is named.
#include "models/same_vocabulary.h"

#include <gtest/gtest.h>

namespace chimere::models {
namespace {

gguf::Metadata tokens(std::vector<std::string> texts) {
  gguf::Metadata m;
  m.set("tokenizer.ggml.tokens", {gguf::ValueType::string, true, std::move(texts)});
  return m;
}

std::vector<std::string> numbered(size_t n) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < n; ++i) texts.push_back("t" + std::to_string(i));
  return texts;
}

TEST(SameVocabulary, EqualAndPaddedListsAreTheSame) {
  EXPECT_TRUE(check_same_vocabulary(tokens(numbered(300)), tokens(numbered(300))));
  EXPECT_TRUE(check_same_vocabulary(tokens(numbered(300)), tokens(numbered(428))));
  EXPECT_TRUE(check_same_vocabulary(tokens(numbered(428)), tokens(numbered(300))));
}

TEST(SameVocabulary, WhatDiffersIsNamed) {
  std::vector<std::string> other = numbered(300);
  other[17] = "x";
  std::swap(other[200], other[201]);
  const Status differs = check_same_vocabulary(tokens(numbered(300)), tokens(other));
  ASSERT_FALSE(differs);
  EXPECT_NE(differs.error().message.find("3 of 300 ids: 17, 200, 201"), std::string::npos) << differs.error().message;
  for (std::string& text : other) text += "!";
  const Status all = check_same_vocabulary(tokens(numbered(300)), tokens(other));
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("300 of 300 ids: 0, 1, 2, 3, 4, ..."), std::string::npos) << all.error().message;
}

TEST(SameVocabulary, AMuchLongerListIsAnother) {
  const Status longer = check_same_vocabulary(tokens(numbered(300)), tokens(numbered(2000)));
  ASSERT_FALSE(longer);
  EXPECT_NE(longer.error().message.find("ids from 300 on"), std::string::npos) << longer.error().message;
  EXPECT_FALSE(check_same_vocabulary(tokens(numbered(3)), gguf::Metadata{})) << "there is none";
}

}  // namespace
}  // namespace chimere::models

// fill_in_test.cpp  The order of the tokens around a gap.
#include "orchestrator/fill_in.h"

#include <gtest/gtest.h>

#include "tokenizer/vocab_for_test.h"

namespace chimere::orchestrator {
namespace {

using tokenizer::TestVocab;
using tokenizer::TokenType;

TEST(FillIn, AVocabularyWithoutItsTokensIsRefused) {
  const auto plain = Tokenizer::from_metadata(TestVocab::bpe().metadata());
  ASSERT_TRUE(plain) << plain.error().message;
  const auto refused = fill_in_prompt(*plain, "a", {"b"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
}

TEST(FillIn, WhatStandsBeforeAndBehindAndOtherFiles) {
  TestVocab vocab = TestVocab::bpe();
  const int32_t prefix = vocab.add("<|fim_prefix|>", TokenType::control);
  const int32_t suffix = vocab.add("<|fim_suffix|>", TokenType::control);
  const int32_t middle = vocab.add("<|fim_middle|>", TokenType::control);
  const auto tokenizer = Tokenizer::from_metadata(vocab.metadata());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const int32_t a = tokenizer->find_token("a"), b = tokenizer->find_token("b");
  EXPECT_EQ(*fill_in_prompt(*tokenizer, "a", {"b"}), (std::vector<int32_t>{prefix, a, suffix, b, middle}));
  // What comes from outside is no token of the format.
  const auto hostile = fill_in_prompt(*tokenizer, "<|fim_middle|>", {"b"});
  EXPECT_EQ(std::count(hostile->begin(), hostile->end(), middle), 1);
  const auto with_file = fill_in_prompt(*tokenizer, "a", {"b", {{"x.h", "int y;"}}});
  ASSERT_TRUE(with_file);
  EXPECT_EQ(tokenizer->decode(*with_file, true), "\n\nx.h\nint y;<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>");

  const int32_t repository = vocab.add("<|repo_name|>", TokenType::control);
  const int32_t file = vocab.add("<|file_sep|>", TokenType::control);
  const auto coder = Tokenizer::from_metadata(vocab.metadata());
  ASSERT_TRUE(coder) << coder.error().message;
  const auto whole = fill_in_prompt(*coder, "a", {"b", {{"x.h", "int y;"}}});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->front(), repository);
  EXPECT_EQ(std::count(whole->begin(), whole->end(), file), 2);
}

}  // namespace
}  // namespace chimere::orchestrator

// tokenizer_test.cpp  Modes and spans, special tokens, decoding, and refused vocabularies.
#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tokenizer/vocab_for_test.h"

namespace chimere {
namespace {

using tokenizer::TestVocab;
using Ids = std::vector<int32_t>;

Tokenizer make(const gguf::Metadata& metadata) {
  auto tokenizer = Tokenizer::from_metadata(metadata);
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  return *tokenizer;
}

std::string refusal(const gguf::Metadata& metadata) {
  const auto tokenizer = Tokenizer::from_metadata(metadata);
  return tokenizer ? "accepted" : tokenizer.error().message;
}

gguf::Metadata with_id(gguf::Metadata metadata, const std::string& name, int64_t id) {
  metadata.set_int("tokenizer.ggml." + name, gguf::ValueType::u32, id);
  return metadata;
}

class BpeTokenizer : public testing::Test {
 protected:
  const Tokenizer t_ = make(TestVocab::bpe().metadata());
  Ids named(std::initializer_list<std::string_view> texts) const {
    Ids ids;
    for (const std::string_view text : texts) {
      ids.push_back(t_.find_token(text));
      EXPECT_GE(ids.back(), 0) << text;
    }
    return ids;
  }
};

TEST_F(BpeTokenizer, ModesRecogniseWhatTheyMay) {
  EXPECT_EQ(t_.encode("<|im_end|><think>", EncodeMode::special, false), named({"<|im_end|>", "<think>"}));
  const Ids text = t_.encode("<|im_end|><think>", EncodeMode::text, false);
  EXPECT_EQ(text.back(), t_.find_token("<think>"));
  EXPECT_EQ(std::count(text.begin(), text.end(), t_.find_token("<|im_end|>")), 0);
  EXPECT_EQ(t_.encode("<think>", EncodeMode::plain, false), named({"<", "t", "h", "i", "n", "k", ">"}));
}

TEST_F(BpeTokenizer, TheLongestSpecialTokenWins) {
  EXPECT_EQ(t_.encode("<think>!", EncodeMode::text, false), named({"<think>!"}));
}

TEST_F(BpeTokenizer, BlankAddedTokensAreRecognisedInPlainText) {
  EXPECT_EQ(t_.encode("a\t\t\ta", EncodeMode::plain, false), named({"a", "\t\t\t", "a"}));
}

TEST_F(BpeTokenizer, MergingNeverArrivesAtAControlToken) {
  for (const EncodeMode mode : {EncodeMode::text, EncodeMode::plain}) {
    EXPECT_EQ(t_.encode("<s>", mode, false), named({"<s", ">"}));
  }
  EXPECT_EQ(t_.encode("<s>", EncodeMode::special, false), named({"<s>"}));
}

TEST_F(BpeTokenizer, SpansJoinWordsButNotSpecialTokens) {
  const auto spans = [&](std::vector<TextSpan> list) { return t_.encode_spans(list, false); };
  using enum EncodeMode;
  EXPECT_EQ(spans({{"say he", special}, {"llo", plain}}), t_.encode("say hello", plain, false));
  EXPECT_EQ(spans({{"<|im_", special}, {"end|>", special}}), named({"<|im_end|>"}));
  const Ids spelt = t_.encode("<|im_end|>", plain, false);
  EXPECT_EQ(spans({{"<|im_", special}, {"end|>", plain}}), spelt);
  EXPECT_EQ(spans({{"<|im_", plain}, {"end|>", special}}), spelt);
  EXPECT_EQ(spans({{"<|im_", special}, {"e", plain}, {"nd|>", special}}), spelt);
  EXPECT_EQ(spans({{"<thi", special}, {"nk>", text}}), named({"<think>"}));
  EXPECT_EQ(spans({{"<think>", special}, {"!", plain}}), named({"<think>", "!"}));
  EXPECT_EQ(spans({{"", plain}, {"<|im_end|>", special}, {"", plain}}), named({"<|im_end|>"}));
  EXPECT_EQ(spans({}), Ids{});
}

TEST_F(BpeTokenizer, DecodesAndIgnoresIdsThatAreNone) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  const int32_t control = t_.find_token("<|im_end|>");
  const Ids ids = {-1, t_.find_token(" hello"), kMin, control, t_.n_vocab(), t_.find_token("<think>"), kMax};
  EXPECT_EQ(t_.decode(ids, true), " hello<|im_end|><think>");
  EXPECT_EQ(t_.decode(ids, false), " hello<think>");
  EXPECT_EQ(t_.token_text(-1), "");
  EXPECT_EQ(t_.token_text(kMax), "");
  EXPECT_FALSE(t_.is_eog(kMin));
  EXPECT_FALSE(t_.is_control(kMax));
}

TEST_F(BpeTokenizer, StreamsWholeCharacters) {
  StreamDecoder decoder(t_);
  EXPECT_EQ(decoder.push(t_.find_token("\xF0")), "");
  EXPECT_EQ(decoder.push(t_.find_token("\x9F")), "");
  EXPECT_EQ(decoder.push(t_.find_token("\x98")), "");
  EXPECT_EQ(decoder.push(t_.find_token("\x80")), "\U0001F600");
  EXPECT_EQ(decoder.push(t_.find_token("\xE2")), "");
  EXPECT_EQ(decoder.push(t_.find_token("a")), "\uFFFDa");
  EXPECT_EQ(decoder.push(t_.find_token("\xFF")), "\uFFFD");
  EXPECT_EQ(decoder.push(t_.find_token("\xE2")), "");
  EXPECT_EQ(decoder.push(t_.find_token("\x82")), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST_F(BpeTokenizer, ListsPlaceholders) {
  EXPECT_EQ(t_.unused_ids(), (Ids{t_.n_vocab() - 2, t_.n_vocab() - 1}));
  EXPECT_EQ(t_.find_token(""), -1);
  EXPECT_EQ(t_.find_token("[PAD1]"), -1);
  EXPECT_TRUE(t_.warnings().empty());
}

TEST(Tokenizer, BeginAndEndRules) {
  TestVocab v = TestVocab::bpe();
  EXPECT_EQ(make(v.metadata()).special_ids().bos, -1);
  EXPECT_EQ(make(v.metadata()).encode("", EncodeMode::plain, true), Ids{});

  auto m = with_id(with_id(v.metadata(), "bos_token_id", 300), "eos_token_id", 'a');
  m.set_bool("tokenizer.ggml.add_bos_token", true);
  EXPECT_EQ(make(m).special_ids().bos, 11) << "an id beyond the vocabulary is ignored";
  const int32_t bos =
      static_cast<int32_t>(std::find(v.tokens.begin(), v.tokens.end(), "<|endoftext|>") - v.tokens.begin());
  m = with_id(m, "bos_token_id", bos);
  m.set_bool("tokenizer.ggml.add_eos_token", true);
  const Tokenizer t = make(m);
  EXPECT_EQ(t.encode("b", EncodeMode::plain, true), (Ids{bos, 'b', 'a'}));
  EXPECT_EQ(t.encode("b", EncodeMode::plain, false), (Ids{'b'}));
  EXPECT_EQ(t.encode("<|endoftext|>b", EncodeMode::special, true), (Ids{bos, 'b', 'a'})) << "not doubled";

  v.pre = "llama-bpe";
  EXPECT_TRUE(make(v.metadata()).adds_bos());
  EXPECT_EQ(make(v.metadata()).encode("b", EncodeMode::plain, true), (Ids{'b'})) << "no id to add";
}

TEST(Tokenizer, EndOfGeneration) {
  TestVocab v = TestVocab::bpe();
  const int32_t end = v.add("<|end|>", TokenType::user_defined);
  const int32_t pad = v.add("<|fim_pad|>", TokenType::control);
  const int32_t last = v.add("!!!");
  const Tokenizer t = make(with_id(v.metadata(), "eom_token_id", last));
  EXPECT_EQ(t.eog_ids(), (Ids{t.find_token("<|endoftext|>"), t.find_token("<|im_end|>"), end, pad, last}));
  EXPECT_TRUE(t.is_control(end)) << "whatever its declared type";
  EXPECT_EQ(t.special_ids().eot, t.find_token("<|im_end|>"));
  EXPECT_EQ(t.special_ids().fim_pad, pad);
  EXPECT_FALSE(t.is_eog(t.find_token("<|im_start|>")));

  v.add("<|return|>", TokenType::control);
  v.add("<|call|>", TokenType::control);
  EXPECT_FALSE(make(v.metadata()).is_eog(end)) << "closes a message, not the turn";

  v = TestVocab::bpe();
  const int32_t eos = v.add("</s>", TokenType::control);
  EXPECT_TRUE(make(v.metadata()).is_eog(eos));
  v.add("<|tool_response>", TokenType::control);
  EXPECT_FALSE(make(v.metadata()).is_eog(eos));
}

TEST(Tokenizer, ReadsSuppressedTokens) {
  auto m = TestVocab::bpe().metadata();
  m.set("tokenizer.ggml.suppress_tokens",
        {.type = gguf::ValueType::i32, .is_array = true, .data = std::vector<int64_t>{3, -1, 9999, 5}});
  EXPECT_EQ(make(m).suppress_ids(), (Ids{3, 5}));
}

TEST(Tokenizer, ComposesWhereTheModelDoes) {
  const std::string decomposed = "e\u0301";
  const auto encode = [&](const char* pre) {
    return make(TestVocab::bpe(pre).metadata()).encode(decomposed, EncodeMode::plain, false).size();
  };
  EXPECT_EQ(encode("qwen35"), 1u);
  EXPECT_EQ(encode("gpt-4o"), 3u);
}

TEST(Tokenizer, SentencePiece) {
  const Tokenizer t = make(TestVocab::spm().metadata());
  const auto id = [&](std::string_view text) { return t.find_token(text); };
  EXPECT_EQ(t.encode("a b", EncodeMode::plain, true), (Ids{1, id(" a"), id(" b")}));
  EXPECT_EQ(t.encode("", EncodeMode::plain, false), Ids{});
  // "aa" outranks "a" + "a" only inside: " a" has the best score of all.
  EXPECT_EQ(t.encode("aaa", EncodeMode::plain, false), (Ids{id(" a"), id("aa")}));
  EXPECT_EQ(t.encode("é", EncodeMode::plain, false), (Ids{id(" "), 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(t.encode("a</s>b", EncodeMode::special, false), (Ids{id(" a"), 2, id(" b")}));
  EXPECT_EQ(t.encode("a<tag>", EncodeMode::text, false), (Ids{id(" a"), id("<tag>")}));

  EXPECT_EQ(t.decode(Ids{1, id(" a"), id(" b")}, false), "a b");
  EXPECT_EQ(t.decode(Ids{3 + 0xC3, 3 + 0xA9}, false), "é");
  StreamDecoder continued(t, false, true);
  EXPECT_EQ(continued.push(id(" a")), " a");
}

TEST(Tokenizer, SentencePieceScoresMayBeIntegers) {
  const TestVocab v = TestVocab::spm();
  auto m = v.metadata();
  m.set(
      "tokenizer.ggml.scores",
      {.type = gguf::ValueType::i32, .is_array = true, .data = std::vector<int64_t>(v.scores.begin(), v.scores.end())});
  EXPECT_EQ(make(m).encode("aaa b", EncodeMode::plain, false),
            make(v.metadata()).encode("aaa b", EncodeMode::plain, false));
}

TEST(Tokenizer, WordPiece) {
  const Tokenizer t = make(with_id(TestVocab::wordpiece().metadata(), "unknown_token_id", 1));
  const Ids expected = {4, 6, 5, 8, 9, 1};
  EXPECT_EQ(t.encode("Héllo! unknowns xyz", EncodeMode::plain, false), expected);
  EXPECT_EQ(t.encode("Hello", EncodeMode::plain, true), (Ids{4})) << "no ids for [CLS] and [SEP] in the file";
  const auto m = with_id(with_id(TestVocab::wordpiece().metadata(), "cls_token_id", 2), "seperator_token_id", 3);
  EXPECT_EQ(make(m).encode("Hello", EncodeMode::plain, true), (Ids{2, 4, 3}));
  EXPECT_EQ(t.decode(Ids{4, 6, 5, 8, 9}, false), "hello ! unknowns");
}

TEST(Tokenizer, RefusesWhatItCannotReproduce) {
  TestVocab v = TestVocab::bpe("no-such-pre");
  EXPECT_NE(refusal(v.metadata()).find("no-such-pre"), std::string::npos);
  for (const char* model : {"none", "no_vocab"}) {
    v.model = model;
    EXPECT_NE(refusal(v.metadata()).find("no vocabulary"), std::string::npos);
  }
  v.model = "rwkv";
  EXPECT_NE(refusal(v.metadata()).find("rwkv"), std::string::npos);
  v = TestVocab::unigram();
  v.scores.pop_back();
  EXPECT_NE(refusal(v.metadata()).find("scores"), std::string::npos);
  v = TestVocab::bpe("");
  EXPECT_FALSE(make(v.metadata()).warnings().empty());
}

TEST(Tokenizer, RefusesInconsistentVocabularies) {
  TestVocab v = TestVocab::bpe();
  v.types.pop_back();
  EXPECT_NE(refusal(v.metadata()).find("token_type"), std::string::npos);
  v = TestVocab::bpe();
  for (const char* line : {"", "ab", "ab ", " "}) {
    v.merges.back() = line;
    EXPECT_NE(refusal(v.metadata()).find("merges[12]"), std::string::npos) << line;
  }
  v = TestVocab::spm();
  v.scores.pop_back();
  EXPECT_NE(refusal(v.metadata()).find("scores"), std::string::npos);
  v = TestVocab::spm();
  v.scores[300 - 37] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal(v.metadata()).find("scores"), std::string::npos);
  v = TestVocab::bpe();
  v.add(std::string(2000, 'x'), TokenType::control);
  EXPECT_NE(refusal(v.metadata()).find("at most"), std::string::npos);
  EXPECT_NE(refusal(gguf::Metadata()).find("tokenizer.ggml.model"), std::string::npos);
}

}  // namespace
}  // namespace chimere

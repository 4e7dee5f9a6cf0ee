// Tokenizers of checkpoints, compared with what the reference converter wrote of them.
#include "convert/tokenizer_metadata.h"

#include <cstdlib>

#include "convert/checkpoint_for_test.h"
#include "gguf/value.h"
#include "tokenizer/tokenizer.h"

namespace chimere::convert::test {
namespace {

Status add(const Json& tokenizer, const Json& config, gguf::Metadata& m, uint64_t n_vocab = 8) {
  TokenizerFiles files;
  files.tokenizer = tokenizer.dump();
  files.config = config.dump();
  return add_tokenizer(files, n_vocab, m);
}

TEST(TokenizerMetadata, ByteLevelWithPaddingAndSpecialTokens) {
  Json tokenizer = tiny_tokenizer();
  tokenizer["added_tokens"].push_back({{"id", 4}, {"content", "<think>"}, {"special", false}});
  tokenizer["added_tokens"].push_back({{"id", 5}, {"content", "<|extra|>"}, {"special", false}});
  gguf::Metadata m;
  const Status status = add(tokenizer, {{"eos_token", {{"content", "<|im_end|>"}}}, {"add_bos_token", false}}, m);
  ASSERT_TRUE(status) << status.error().message;
  const auto texts = m.get_strings("tokenizer.ggml.tokens");
  EXPECT_EQ(std::vector<std::string>(texts->begin(), texts->end()),
            (std::vector<std::string>{"a", "b", "ab", "<|im_end|>", "<think>", "<|extra|>", "[PAD6]", "[PAD7]"}));
  EXPECT_EQ(*m.get_ints("tokenizer.ggml.token_type", 0, 9), (std::vector<int64_t>{1, 1, 1, 3, 4, 3, 5, 5}));
  EXPECT_EQ(*m.get_string("tokenizer.ggml.pre"), "gpt-2");
  EXPECT_EQ(*m.get_int("tokenizer.ggml.eos_token_id", 0, 99), 3);
  EXPECT_EQ(*m.get_bool("tokenizer.ggml.add_bos_token"), false);
}

TEST(TokenizerMetadata, SentencePieceScoresFollowTheMerges) {
  const Json tokenizer = Json::parse(R"({"added_tokens": [{"id": 1, "content": "<s>", "special": true}],
      "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "x"}]},
      "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {}}]},
      "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "merges": ["b a", "a b"],
                "vocab": {"<unk>": 0, "<s>": 1, "<0x41>": 2, "a": 3, "b": 4, "ab": 5, "ba": 6}}})");
  gguf::Metadata m;
  const Status status = add(tokenizer, {{"bos_token", "<s>"}}, m, 7);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(*m.get_string("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(*m.get_ints("tokenizer.ggml.token_type", 0, 9), (std::vector<int64_t>{2, 3, 6, 1, 1, 1, 1}));
  const auto scores = m.get_floats("tokenizer.ggml.scores");
  EXPECT_GT((*scores)[6], (*scores)[5]);
  EXPECT_EQ(*m.get_bool("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(*m.get_bool("tokenizer.ggml.add_space_prefix"), true);
}

TEST(TokenizerMetadata, UnigramModelsKeepScoresAndNormaliser) {
  const Json tokenizer = Json::parse(R"({
      "added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "</s>", "special": true},
                       {"id": 2, "content": "<unk>", "special": true}],
      "normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": "AAECA/8="}]},
      "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}]},
      "model": {"type": "Unigram", "unk_id": 2,
                "vocab": [["<s>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["\u2581a", -3.5], ["b", -4.25]]}})");
  gguf::Metadata m;
  const Status status = add(tokenizer, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}, m, 6);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(*m.get_string("tokenizer.ggml.model"), "t5");
  EXPECT_EQ(*m.get_ints("tokenizer.ggml.token_type", 0, 9), (std::vector<int64_t>{3, 3, 2, 1, 1, 5}));
  EXPECT_EQ(*m.get_floats("tokenizer.ggml.scores"), (std::vector<float>{0, 0, 0, -3.5f, -4.25f, 0}));
  EXPECT_EQ(*m.get_ints("tokenizer.ggml.precompiled_charsmap", 0, 255), (std::vector<int64_t>{0, 1, 2, 3, 255}));
  EXPECT_EQ(*m.get_int("tokenizer.ggml.unknown_token_id", 0, 9), 2);
  EXPECT_TRUE(*m.get_bool("tokenizer.ggml.add_bos_token"));
}

TEST(TokenizerMetadata, UnknownWaysToSplitAndIdsOutOfRangeAreRefused) {
  gguf::Metadata m;
  Json tokenizer = tiny_tokenizer();
  tokenizer["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "[aeiou]+"}}}};
  Status status = add(tokenizer, {}, m);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("[aeiou]+"), std::string::npos) << status.error().message;
  status = add(tiny_tokenizer(), {}, m, 3);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("<|im_end|>"), std::string::npos) << status.error().message;
  tokenizer = tiny_tokenizer();
  tokenizer["model"]["type"] = "Unigram";
  EXPECT_FALSE(add(tokenizer, {}, m));
  tokenizer["model"]["vocab"] = Json::parse(R"([["a", -1.5], ["b"]])");
  EXPECT_FALSE(add(tokenizer, {}, m));
  tokenizer["model"]["vocab"] = Json::parse(R"([["a", -1.5], ["b", -2]])");
  tokenizer["model"]["unk_id"] = 99;
  status = add(tokenizer, {}, m);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("unk_id"), std::string::npos) << status.error().message;
}

TEST(TokenizerMetadata, SamplingAndNamedTemplates) {
  TokenizerFiles files;
  files.tokenizer = tiny_tokenizer().dump();
  files.config = R"({"chat_template": [{"name": "default", "template": "A"}, {"name": "tool_use", "template": "B"}]})";
  files.generation_config = R"({"do_sample": true, "temperature": 0.5, "top_k": 20, "top_p": 7})";
  gguf::Metadata m;
  ASSERT_TRUE(add_tokenizer(files, 8, m));
  EXPECT_EQ(*m.get_string("tokenizer.chat_template"), "A");
  EXPECT_EQ(*m.get_string("tokenizer.chat_template.tool_use"), "B");
  EXPECT_EQ(*m.get_float("general.sampling.temp"), 0.5);
  EXPECT_EQ(*m.get_int("general.sampling.top_k", 0, 99), 20);
  EXPECT_FALSE(m.contains("general.sampling.top_p"));  // out of range
}

// Eight byte-level tokenizers in both forms: the same tokens, types, merges and ids, and a name that splits the same.
TEST(TokenizerMetadata, TokenizersAreThoseOfTheReferenceConverter) {
  const char* shared = std::getenv("CHIMERE_SHARED");
  if (!shared) GTEST_SKIP() << "CHIMERE_SHARED names no folder";
  int n_compared = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(shared) / "fixtures")) {
    if (entry.path().filename().string().rfind("tokenizer-", 0) != 0) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto reference = gguf::File::open((entry.path() / "vocab.gguf").string());
    ASSERT_TRUE(reference) << reference.error().message;
    const auto files = read_tokenizer_files(entry.path().string());
    ASSERT_TRUE(files) << files.error().message;
    gguf::Metadata ours;
    const size_t n_vocab = reference->metadata().get_strings("tokenizer.ggml.tokens")->size();
    const Status status = add_tokenizer(*files, n_vocab, ours);
    ASSERT_TRUE(status) << status.error().message;
    for (const auto& [key, value] : reference->metadata().entries()) {
      if (key.rfind("tokenizer.", 0) != 0 || key == "tokenizer.ggml.add_sep_token") continue;
      const gguf::Value* found = ours.find(key);
      ASSERT_NE(found, nullptr) << key;
      EXPECT_TRUE(*found == value) << key << ": " << gguf::describe(*found) << ", expected " << gguf::describe(value);
    }
    ++n_compared;
  }
  EXPECT_EQ(n_compared, 8);
}

}  // namespace
}  // namespace chimere::convert::test

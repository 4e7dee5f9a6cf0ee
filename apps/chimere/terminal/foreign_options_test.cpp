// Command lines of llama-server, as people paste them.
#include "terminal/foreign_options.h"

#include <gtest/gtest.h>

namespace chimere::apps {
namespace {

using Words = std::vector<std::string>;

Words translated(const Words& arguments) {
  auto words = in_own_words(arguments);
  EXPECT_TRUE(words) << words.error().message;
  return words ? words->arguments : Words();
}

TEST(ForeignOptions, OurOwnAreLeftAlone) {
  const Words ours = {"model.gguf", "--ctx", "4096", "--parallel", "4", "--kv-k", "q8_0", "--alias", "a,b"};
  EXPECT_EQ(translated(ours), ours);
}

TEST(ForeignOptions, OtherNamesForTheSame) {
  EXPECT_EQ(translated({"-m", "m.gguf", "-ctk", "q8_0", "--n-predict", "64", "--no-webui", "-s", "7"}),
            (Words{"--model", "m.gguf", "--kv-k", "q8_0", "--max-tokens", "64", "--no-page", "--seed", "7"}));
  EXPECT_EQ(translated({"--chat-template-file=t.jinja"}), (Words{"--chat-template", "t.jinja"}));
}

TEST(ForeignOptions, AContextIsDividedAmongSlots) {
  EXPECT_EQ(translated({"-c", "8192", "-np", "4"}), (Words{"--ctx", "2048", "--parallel", "4"}));
  EXPECT_EQ(translated({"-c", "8192", "--parallel", "4", "--kv-unified"}), (Words{"--ctx", "8192", "--parallel", "4"}));
  EXPECT_EQ(translated({"-c", "8192"}), (Words{"--ctx", "8192"}));
}

TEST(ForeignOptions, ListsOfKeysAndAdaptersWithoutAName) {
  EXPECT_EQ(translated({"--api-key", "a,b"}), (Words{"--api-key", "a", "--api-key", "b"}));
  EXPECT_EQ(translated({"--lora", "/x/style.gguf"}), (Words{"--lora", "style=/x/style.gguf"}));
  EXPECT_EQ(translated({"--lora", "s=/x/style.gguf"}), (Words{"--lora", "s=/x/style.gguf"}));
}

TEST(ForeignOptions, WhatHasNoEffectIsNamed) {
  const auto words = in_own_words({"-ngl", "99", "--jinja", "-fa", "on", "m.gguf"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->arguments, Words{"m.gguf"});
  ASSERT_EQ(words->notes.size(), 3u);
  EXPECT_NE(words->notes[0].find("-ngl has no effect"), std::string::npos);
}

TEST(ForeignOptions, GuessesHaveOurModes) {
  EXPECT_EQ(translated({"-md", "small.gguf", "--draft-max", "4"}),
            (Words{"--draft-model", "small.gguf", "--draft-max", "4"}));
  EXPECT_EQ(translated({"--spec-type", "none"}), (Words{"--speculate", "off"}));
  EXPECT_EQ(translated({"--spec-type=ngram-mod"}), (Words{"--speculate", "ngram"}));
  EXPECT_EQ(translated({"--spec-type", "draft-simple"}), (Words{"--speculate", "draft"}));
  EXPECT_EQ(translated({"--spec-type", "draft-mtp,ngram-mod"}), (Words{"--speculate", "auto"}));
  const auto other = in_own_words({"--spec-type", "draft-eagle3"});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("draft (with --draft-model)"), std::string::npos) << other.error().message;
}

TEST(ForeignOptions, PlacesOfWeights) {
  EXPECT_EQ(translated({"-cmoe", "-v"}), (Words{"--cpu-moe", "all", "--verbose"}));
  EXPECT_EQ(translated({"m.gguf", "--cpu-moe"}), (Words{"m.gguf", "--cpu-moe", "all"}));
  EXPECT_EQ(translated({"--cpu-moe", "12"}), (Words{"--cpu-moe", "12"}));
  EXPECT_EQ(translated({"-ot", ".ffn_.*_exps.=CPU"}), (Words{"--cpu-moe", "all"}));
  EXPECT_EQ(translated({"--override-tensor=exps=CPU"}), (Words{"--cpu-moe", "all"}));
  const auto some = in_own_words({"-ot", "blk.[0-9].ffn_up=CPU"});
  ASSERT_FALSE(some);
  EXPECT_NE(some.error().message.find("--cpu-moe N"), std::string::npos) << some.error().message;
  EXPECT_EQ(translated({"-ngl", "0"}), (Words{"--vram", "0"}));
  EXPECT_EQ(translated({"-ngl", "24"}), (Words{"--gpu-layers", "24"}));
  EXPECT_EQ(translated({"--gpu-layers", "24"}), (Words{"--gpu-layers", "24"}));
  for (const char* all : {"99", "999", "all", "-1"}) EXPECT_EQ(translated({"-ngl", all}), Words{}) << all;
  EXPECT_EQ(translated({"-dev", "none"}), (Words{"--backend", "cpu"}));
  EXPECT_EQ(translated({"-sm", "row", "--main-gpu", "1", "-ts", "3,1", "-dev", "CUDA0"}), Words{});
}

TEST(ForeignOptions, Thoughts) {
  EXPECT_EQ(translated({"--reasoning-budget", "0"}), (Words{"--reasoning", "off"}));
  EXPECT_EQ(translated({"--reasoning-budget=-1"}), Words{});
  EXPECT_EQ(translated({"--reasoning-budget", "512"}), (Words{"--thinking-budget", "512"}));
  const Words ours = {"--chat-template-kwargs", R"({"enable_thinking":false})"};
  EXPECT_EQ(translated(ours), ours);
}

TEST(ForeignOptions, CommandLinesOfOllama) {
  EXPECT_EQ(translated({"ollama", "serve"}), (Words{"--models", "ollama"}));
  EXPECT_EQ(translated({"ollama", "run", "qwen3:8b", "--think=false", "--keepalive", "1h30m", "Why is it so?"}),
            (Words{"--models", "ollama", "--reasoning", "off", "--idle-unload", "90"}));
  EXPECT_EQ(translated({"--keepalive", "90"}), (Words{"--idle-unload", "1.5"}));
  EXPECT_EQ(translated({"--keepalive=-1"}), (Words{"--idle-unload", "0"}));
  EXPECT_EQ(translated({"--think", "--port", "1"}), (Words{"--reasoning", "on", "--port", "1"}));
  EXPECT_FALSE(in_own_words({"--keepalive", "soon"}));
  EXPECT_FALSE(in_own_words({"--format", "json"}));
  EXPECT_EQ(translated({"build/bin/llama-server", "-m", "x.gguf"}), (Words{"--model", "x.gguf"}));
}

TEST(ForeignOptions, RunIsAChat) {
  const auto run = [](const Words& arguments) {
    auto words = chat_in_own_words(arguments);
    EXPECT_TRUE(words) << words.error().message;
    return words ? words->arguments : Words();
  };
  EXPECT_EQ(run({"qwen3"}), Words{"qwen3"});
  EXPECT_EQ(run({"qwen3", "Why", "so?"}), (Words{"qwen3", "-p", "Why so?"}));
  EXPECT_EQ(run({"qwen3", "--think=false", "--hidethinking", "--keepalive", "5m", "Why?"}),
            (Words{"qwen3", "--no-think", "--hide-thinking", "-p", "Why?"}));
  EXPECT_FALSE(chat_in_own_words({}));
  EXPECT_FALSE(chat_in_own_words({"qwen3", "--format", "json"}));
}

TEST(ForeignOptions, AdaptersWithAScale) {
  EXPECT_EQ(translated({"--lora-scaled", "/x/style.gguf:0.5"}), (Words{"--lora", "style=/x/style.gguf:0.5"}));
  EXPECT_EQ(translated({"--lora", "a.gguf,b.gguf"}), (Words{"--lora", "a=a.gguf", "--lora", "b=b.gguf"}));
}

TEST(ForeignOptions, WhatIsNotHereIsRefused) {
  for (const Words& words : {Words{"-hf", "a/b"}, Words{"--mmproj", "x"}, Words{"--context-shift"}, Words{"-c"},
                             Words{"--override-kv", "a=int:1"}, Words{"--grammar", "root"}, Words{"--rpc", "a:1"},
                             Words{"--rope-scale", "2"}, Words{"--json-schema", "{}"}, Words{"--list-devices"}}) {
    const auto result = in_own_words(words);
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().message.starts_with(words[0] + ": ")) << result.error().message;
  }
}

}  // namespace
}  // namespace chimere::apps

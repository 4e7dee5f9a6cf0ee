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

TEST(ForeignOptions, WhatIsNotHereIsRefused) {
  for (const Words& words : {Words{"-hf", "a/b"}, Words{"--mmproj", "x"}, Words{"--context-shift"}, Words{"-c"}}) {
    const auto result = in_own_words(words);
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().message.starts_with(words[0] + ": ")) << result.error().message;
  }
}

}  // namespace
}  // namespace chimere::apps

// pretokenizer_test.cpp  Parts of small texts, where the published expressions differ or backtrack.
#include "tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include <string>

namespace chimere::tokenizer {
namespace {

// The parts, with a bar after each.
std::string parts(std::string_view pre, std::string_view text) {
  const auto pre_tokenizer = PreTokenizer::named(pre);
  if (!pre_tokenizer) return "unknown name";
  std::string out;
  pre_tokenizer->split(text, [&](std::string_view part) {
    EXPECT_FALSE(part.empty());
    out += part;
    out += '|';
  });
  return out;
}

TEST(PreTokenizer, KnowsItsNames) {
  for (const char* name : {"qwen2", "pixtral", "glm4", "llama4", "tekken", "olmo", "minerva-7b", "joyai-llm"}) {
    EXPECT_TRUE(PreTokenizer::named(name)) << name;
  }
  EXPECT_FALSE(PreTokenizer::named(""));
  EXPECT_FALSE(PreTokenizer::named("qwen"));
}

TEST(PreTokenizer, Contractions) {
  EXPECT_EQ(parts("qwen2", "I'LL he's 'something y'all"), "I|'LL| he|'s| '|something| y|'all|");
  EXPECT_EQ(parts("gpt-2", "I'LL he's"), "I|'|LL| he|'s|");
  EXPECT_EQ(parts("gpt-4o", "I'LL he's"), "I'LL| he's|");
  EXPECT_EQ(parts("tekken", "I'LL he's"), "I|'LL| he|'s|");
}

TEST(PreTokenizer, Numbers) {
  EXPECT_EQ(parts("qwen35", "a1234"), "a|1|2|3|4|");
  EXPECT_EQ(parts("llama-bpe", "a1234 56"), "a|123|4| |56|");
  EXPECT_EQ(parts("gpt-2", "a1234 56"), "a|1234| 56|");
  EXPECT_EQ(parts("starcoder", "a12 56"), "a|1|2| |5|6|");
  EXPECT_EQ(parts("falcon", "12345 x"), "123|45| x|");
  EXPECT_EQ(parts("default", " 12345"), " |123|45|");
}

TEST(PreTokenizer, Spaces) {
  EXPECT_EQ(parts("qwen2", "a   b"), "a|  | b|");
  EXPECT_EQ(parts("qwen2", "a   "), "a|   |");
  EXPECT_EQ(parts("qwen2", "a \n\n  b"), "a| \n\n| | b|");
  EXPECT_EQ(parts("gpt-2", "a \n\n  b"), "a| \n\n | b|");
  EXPECT_EQ(parts("qwen2", "a\t1"), "a|\t|1|");
  EXPECT_EQ(parts("qwen2", "!\n\n/"), "!\n\n|/|");
  EXPECT_EQ(parts("gpt-4o", "!\n\n/"), "!\n\n/|");
}

TEST(PreTokenizer, Marks) {
  EXPECT_EQ(parts("qwen35", "न\u093F!"), "न\u093F|!|");
  EXPECT_EQ(parts("qwen2", "न\u093F!"), "न|\u093F!|");
  EXPECT_EQ(parts("gpt-4o", "\u0301ABC"), "\u0301|ABC|") << "a mark before capitals is a word";
  EXPECT_EQ(parts("gpt-4o", "\u0301abc"), "\u0301abc|");
}

TEST(PreTokenizer, Capitals) {
  EXPECT_EQ(parts("gpt-4o", "fooBar HTTPServer XY1"), "foo|Bar| HTTPServer| XY|1|");
  EXPECT_EQ(parts("gpt-4o", "中AB"), "中|AB|") << "U* gives back to the last character that W+ can take";
}

TEST(PreTokenizer, DeepSeek) {
  EXPECT_EQ(parts("deepseek-v3", "x中文字y#include 12345 ok!\n"), "x|中文字|y|#include| |123|45| ok|!\n|");
  EXPECT_EQ(parts("deepseek-v3", "\x01\x02z\x03"), "\x01|\x02z|\x03|") << "gaps are parts";
}

TEST(PreTokenizer, KnowsEveryNameThatFilesHave) {
  for (const char* name : {"qwen35",      "qwen2",        "deepseek-r1-qwen",
                           "megrez",      "stablelm2",    "hunyuan",
                           "solar-open",  "grok-2",       "llama-bpe",
                           "llama3",      "llama-v3",     "falcon3",
                           "falcon-h1",   "pixtral",      "midm-2.0",
                           "lfm2",        "dbrx",         "smaug-bpe",
                           "glm4",        "chatglm-bpe",  "gpt-4o",
                           "llama4",      "kanana2",      "minimax-m2",
                           "tekken",      "gpt-2",        "phi-2",
                           "mpt",         "olmo",         "jais",
                           "exaone4",     "mellum",       "gigachat",
                           "modern-bert", "starcoder",    "refact",
                           "command-r",   "smollm",       "codeshell",
                           "exaone",      "minerva-7b",   "deepseek-v3",
                           "joyai-llm",   "falcon",       "hunyuan-dense",
                           "default",     "deepseek-llm", "deepseek-coder"}) {
    EXPECT_TRUE(PreTokenizer::named(name)) << name;
  }
  for (const char* name : {"", "nemotron", "deepseek", "deepseek-v2"}) EXPECT_FALSE(PreTokenizer::named(name)) << name;
}

TEST(PreTokenizer, DeepSeekCoderAndLlm) {
  EXPECT_EQ(parts("deepseek-coder", "def f(x):\n\treturn x + 1234"), "def| f|(|x|):|\n|\treturn| x| + |1|2|3|4|");
  EXPECT_EQ(parts("deepseek-llm", "def f(x):\n\treturn x + 1234"), "def| f|(|x|):|\n|\treturn| x| +| |1234|");
  EXPECT_EQ(parts("deepseek-coder", "Grüße,  Welt… 中文!　日本 ok  "), "Grüße|,| | Welt|…| |中文|!|　日本| ok|  |");
  EXPECT_EQ(parts("deepseek-llm", "Grüße,  Welt… 中文!　日本 ok  "), "Gr|üß|e|,| | Welt|…| |中文|!|　|日本| ok|  |")
      << "the second expression's :-~ holds the letters of ASCII";
  EXPECT_EQ(parts("deepseek-coder", "  😀   "), "  😀   |");
  EXPECT_EQ(parts("deepseek-llm", "  😀   "), "  😀|   |");
  EXPECT_EQ(parts("deepseek-coder", "नमस्ते ℵ"), "नमस|्|त|े| |ℵ|");
  EXPECT_EQ(parts("deepseek-llm", "नमस्ते ℵ"), "नमस्ते| |ℵ|");
}

TEST(PreTokenizer, InvalidBytesArePassedOver) {
  for (const char* pre :
       {"qwen35", "gpt-4o", "gpt-2", "deepseek-v3", "deepseek-coder", "deepseek-llm", "falcon", "default"}) {
    std::string joined = parts(pre, "a\xFF\xC3 b\xE2\x82");
    std::erase(joined, '|');
    EXPECT_EQ(joined, "a\xFF\xC3 b\xE2\x82") << pre;
  }
}

}  // namespace
}  // namespace chimere::tokenizer

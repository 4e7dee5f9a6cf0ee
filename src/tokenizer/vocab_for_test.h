// vocab_for_test.h  Small vocabularies for tests and fuzzing, as the metadata a file would hold.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocab.h"

namespace chimere::tokenizer {

// The stand-in for a byte in byte-level vocabularies.
inline std::string written_byte(int byte) {
  const auto stands_for_itself = [](int b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  char32_t code = static_cast<char32_t>(byte);
  if (!stands_for_itself(byte)) {
    code = 0x100;
    for (int b = 0; b < byte; ++b) code += !stands_for_itself(b);
  }
  std::string written;
  append_utf8(code, written);
  return written;
}

struct TestVocab {
  std::string model = "gpt2";
  std::string pre = "qwen35";
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  std::vector<double> scores;
  std::vector<std::string> merges;

  int32_t add(std::string text, TokenType type = TokenType::normal, double score = 0) {
    tokens.push_back(std::move(text));
    types.push_back(static_cast<int64_t>(type));
    scores.push_back(score);
    return static_cast<int32_t>(tokens.size() - 1);
  }
  void add_merge(const std::string& left, const std::string& right, TokenType type = TokenType::normal) {
    merges.push_back(left + " " + right);
    add(left + right, type);
  }

  gguf::Metadata metadata() const {
    gguf::Metadata m;
    m.set_string("tokenizer.ggml.model", model);
    if (!pre.empty()) m.set_string("tokenizer.ggml.pre", pre);
    m.set("tokenizer.ggml.tokens", {.type = gguf::ValueType::string, .is_array = true, .data = tokens});
    m.set("tokenizer.ggml.token_type", {.type = gguf::ValueType::i32, .is_array = true, .data = types});
    if (model == "gpt2") {
      m.set("tokenizer.ggml.merges", {.type = gguf::ValueType::string, .is_array = true, .data = merges});
    } else if (model == "llama" || model == "t5") {
      m.set("tokenizer.ggml.scores", {.type = gguf::ValueType::f32, .is_array = true, .data = scores});
    }
    return m;
  }

  // All bytes, a few merges, and added tokens of every type.
  static TestVocab bpe(std::string pre = "qwen35") {
    TestVocab v;
    v.pre = std::move(pre);
    for (int byte = 0; byte < 256; ++byte) v.add(written_byte(byte));
    const std::string space = written_byte(' ');
    v.add_merge("a", "a");
    v.add_merge("aa", "aa");
    v.add_merge("a", "b");
    v.add_merge("b", "c");
    v.add_merge("h", "e");
    v.add_merge("l", "l");
    v.add_merge("he", "ll");
    v.add_merge("hell", "o");
    v.add_merge(space, "hello");
    v.add_merge(space, space);
    v.add_merge(written_byte(0xC3), written_byte(0xA9));  // é
    v.add_merge("<", "s");
    v.add_merge("<s", ">", TokenType::control);  // merging leads to it and must not arrive
    v.add("<|endoftext|>", TokenType::control);
    v.add("<|im_start|>", TokenType::control);
    v.add("<|im_end|>", TokenType::control);
    v.add("<think>", TokenType::user_defined);
    v.add("<think>!", TokenType::user_defined);
    v.add("\t\t\t", TokenType::user_defined);
    v.add("[PAD1]", TokenType::unused);
    v.add("");
    return v;
  }

  // Control tokens, all byte tokens, a few pieces.
  static TestVocab spm() {
    TestVocab v;
    v.model = "llama";
    v.pre = "";
    v.add("<unk>", TokenType::unknown);
    v.add("<s>", TokenType::control);
    v.add("</s>", TokenType::control);
    constexpr char kHex[] = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte) {
      v.add(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", TokenType::byte);
    }
    double score = 0;
    const std::string space(kSpaceMark);
    for (const std::string& piece : {space + "a", space + "b", std::string("aa"), std::string("ab"), std::string("a"),
                                     std::string("b"), space + space, space}) {
      v.add(piece, TokenType::normal, score--);
    }
    v.add("<tag>", TokenType::user_defined);
    return v;
  }

  static TestVocab wordpiece() {
    TestVocab v;
    v.model = "bert";
    v.pre = "";
    for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) v.add(text, TokenType::control);
    const std::string start(kSpaceMark);
    for (const char* text : {"hello", "un", "!", "e"}) v.add(start + text);
    for (const char* text : {"known", "s"}) v.add(text);
    return v;
  }

  // Ids 0 to 3 are those of XLM-R; the others are pieces.
  static TestVocab unigram() {
    TestVocab v;
    v.model = "t5";
    v.pre = "default";
    v.add("<s>", TokenType::control);
    v.add("<pad>", TokenType::control);
    v.add("</s>", TokenType::control);
    v.add("<unk>", TokenType::unknown);
    const std::pair<const char*, double> pieces[] = {
        {"▁", -3.5},    {"a", -4},    {"b", -4.25}, {"c", -5},  {"ab", -6},     {"▁a", -5.5}, {"bc", -6.5}, {"abc", -9},
        {"▁ab", -7.75}, {"ca", -8.5}, {"é", -7},    {"fi", -6}, {"▁abca", -12}, {"i", -6.25}, {"xy", -8}};
    for (const auto& [text, score] : pieces) v.add(text, TokenType::normal, score);
    return v;
  }
};

}  // namespace chimere::tokenizer

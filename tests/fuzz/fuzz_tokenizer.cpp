// fuzz_tokenizer.cpp  Arbitrary bytes through every kind of tokenizer, in every mode, cut anywhere, and back.
//
// Input: one byte that chooses the vocabulary, one that sets where the text is cut, then the text.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocab_for_test.h"

namespace {

using chimere::EncodeMode;
using chimere::is_valid_utf8;
using chimere::StreamDecoder;
using chimere::TextSpan;
using chimere::Tokenizer;
using chimere::TokenType;
using chimere::VocabKind;
using chimere::tokenizer::TestVocab;
using Ids = std::vector<int32_t>;

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> list;
    for (const char* pre : {"qwen35", "qwen2", "llama-bpe", "gpt-4o", "tekken", "gpt-2", "starcoder", "deepseek-v3",
                            "falcon", "default"}) {
      list.push_back(*Tokenizer::from_metadata(TestVocab::bpe(pre).metadata()));
    }
    list.push_back(*Tokenizer::from_metadata(TestVocab::spm().metadata()));
    auto bert = TestVocab::wordpiece().metadata();
    bert.set_int("tokenizer.ggml.unknown_token_id", chimere::gguf::ValueType::u32, 1);
    list.push_back(*Tokenizer::from_metadata(bert));
    auto unigram = TestVocab::unigram().metadata();
    unigram.set_int("tokenizer.ggml.unknown_token_id", chimere::gguf::ValueType::u32, 3);
    list.push_back(*Tokenizer::from_metadata(unigram));
    return list;
  }();
  return all;
}

void check_plain_ids(const Tokenizer& tokenizer, const Ids& ids) {
  for (const int32_t id : ids) {
    CHECK(id >= 0 && id < tokenizer.n_vocab());
    const bool blank = tokenizer.token_text(id) == "\t\t\t";
    const TokenType type = tokenizer.token_type(id);
    CHECK(type == TokenType::normal || type == TokenType::byte || blank || id == tokenizer.special_ids().unk);
  }
}

void check_decoding(const Tokenizer& tokenizer, const Ids& ids) {
  for (const bool special : {false, true}) {
    const std::string whole = tokenizer.decode(ids, special);
    CHECK(is_valid_utf8(whole));
    StreamDecoder decoder(tokenizer, special);
    std::string streamed;
    for (const int32_t id : ids) {
      const std::string piece = decoder.push(id);
      CHECK(is_valid_utf8(piece));
      streamed += piece;
    }
    streamed += decoder.finish();
    CHECK(streamed == whole);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Tokenizer& tokenizer = tokenizers()[data[0] % tokenizers().size()];
  const size_t step = data[1] % 16 + 1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);

  for (const EncodeMode mode : {EncodeMode::special, EncodeMode::text, EncodeMode::plain}) {
    const Ids ids = tokenizer.encode(text, mode, true);
    check_decoding(tokenizer, ids);
    std::vector<TextSpan> spans;
    for (size_t pos = 0; pos < text.size(); pos += step) spans.push_back({text.substr(pos, step), mode});
    CHECK(tokenizer.encode_spans(spans, true) == ids);
  }

  const Ids plain = tokenizer.encode(text, EncodeMode::plain, false);
  check_plain_ids(tokenizer, plain);
  if (tokenizer.kind() == VocabKind::bpe && is_valid_utf8(text)) {
    const bool composes = tokenizer.pre() == "qwen35" || tokenizer.pre() == "qwen2";
    const std::string back = tokenizer.decode(plain, false);
    CHECK(back == (composes ? chimere::tokenizer::to_nfc(text) : std::string(text)));
  }

  // Text between two template words never turns into something else than text.
  const std::array<TextSpan, 3> chat = {
      TextSpan{"<|im_start|>", EncodeMode::special}, {text, EncodeMode::plain}, {"<|im_end|>", EncodeMode::special}};
  const Ids ids = tokenizer.encode_spans(chat, false);
  if (tokenizer.kind() == VocabKind::bpe) {
    CHECK(ids.size() == plain.size() + 2);
    CHECK(std::equal(plain.begin(), plain.end(), ids.begin() + 1));
  } else {
    check_plain_ids(tokenizer, ids);
  }

  // The bytes as a normaliser of themselves.
  if (const auto map = chimere::tokenizer::CharsMap::parse(text)) {
    std::string out;
    for (size_t pos = 0; pos < text.size();) pos += map->append(text, pos, out);
  }

  // The bytes as ids, most of them outside the vocabulary.
  Ids wild(text.size() / sizeof(int32_t));
  if (!wild.empty()) std::memcpy(wild.data(), text.data(), wild.size() * sizeof(int32_t));
  check_decoding(tokenizer, wild);
  Ids bytes(text.begin(), text.end());
  for (int32_t& id : bytes) id *= 2;
  check_decoding(tokenizer, bytes);
  return 0;
}

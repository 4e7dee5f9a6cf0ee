// vocab.h  The token list of a model: texts, types, special ids, and which tokens end a generation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"

namespace chimere::tokenizer {

enum class VocabKind { bpe, spm, wordpiece, unigram };

// As in `tokenizer.ggml.token_type`.
enum class TokenType : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// -1: the model has none.
struct SpecialIds {
  int32_t bos = -1, eos = -1, eot = -1, eom = -1;
  int32_t unk = -1, sep = -1, pad = -1, cls = -1, mask = -1;
  int32_t fim_pre = -1, fim_suf = -1, fim_mid = -1, fim_pad = -1, fim_rep = -1, fim_sep = -1;
};

struct Vocab {
  VocabKind kind = VocabKind::bpe;
  std::string pre;  // byte-level BPE only
  std::vector<TokenType> types;
  SpecialIds ids;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  std::vector<bool> eog;  // by id
  std::vector<int32_t> eog_ids;
  std::vector<int32_t> unused_ids;    // type unused, or without a text
  std::vector<int32_t> suppress_ids;  // the file asks never to sample these
  std::vector<std::string> warnings;

  int32_t size() const { return static_cast<int32_t>(types.size()); }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }
  // The bytes a token stands for (not always whole characters). REQUIRES: contains(id).
  std::string_view text(int32_t id) const {
    return std::string_view(texts_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }

  // Reads and checks the `tokenizer.ggml.*` keys, except merges and scores, which belong to the algorithms.
  static Result<Vocab> from_metadata(const gguf::Metadata& metadata);

 private:
  Status read_types(const gguf::Metadata& metadata, std::span<const std::string> written);
  void set_texts(std::span<const std::string> written);
  // In special_tokens.cpp: ids, begin and end rules, end-of-generation set.
  Status resolve_special(const gguf::Metadata& metadata, std::span<const std::string> written);

  std::string texts_;
  std::vector<size_t> offsets_;
};

// The byte of a token written `<0xXX>`, or -1.
int byte_token_value(std::string_view written);

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, a space in SentencePiece and WordPiece vocabularies

}  // namespace chimere::tokenizer

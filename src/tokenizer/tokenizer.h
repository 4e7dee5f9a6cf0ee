// tokenizer.h  Text to token ids and back, as the model's own tokenizer does it.
//
//   TRY_ASSIGN(Tokenizer tokenizer, Tokenizer::from_metadata(file.metadata()));
//   std::vector<int32_t> ids = tokenizer.encode("Hello", EncodeMode::plain, true);
//
// A Tokenizer is a cheap handle on immutable data: copy it freely, use it from any thread.
//
// Text from a user must never become a control token, so every text says how far it is trusted (EncodeMode). A
// rendered chat is a list of spans: the template's own words in `special`, what came from messages in `plain`.
// Splitting into words runs across span borders; only the recognition of special tokens respects them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocab.h"

namespace chimere {

using tokenizer::SpecialIds;
using tokenizer::TokenType;
using tokenizer::VocabKind;

enum class EncodeMode : uint8_t {
  special,  // control and user-defined tokens are recognised: text of a template
  text,     // user-defined tokens are recognised
  plain,    // none is, except user-defined runs of spaces, which mean nothing but themselves: untrusted text
};

struct TextSpan {
  std::string_view text;
  EncodeMode mode;
};

class Tokenizer {
 public:
  // Refuses vocabularies it cannot reproduce (unknown kind or pre-tokenizer, none at all) and inconsistent ones.
  static Result<Tokenizer> from_metadata(const gguf::Metadata& metadata);

  // `add_special` puts the model's begin and end tokens around the ids, if it has the habit; a begin token that the
  // text itself starts with is not doubled.
  std::vector<int32_t> encode(std::string_view text, EncodeMode mode, bool add_special) const;
  // The texts as one. A special token is recognised only where all of its text lies in spans that permit it.
  std::vector<int32_t> encode_spans(std::span<const TextSpan> spans, bool add_special) const;

  // Two texts as an encoder reads a pair, untrusted: [CLS] first [SEP] second [SEP], or with the begin and end tokens
  // <s> first </s></s> second </s>.
  struct Pair {
    std::vector<int32_t> ids;
    int32_t second_at = 0;  // where the second text begins
  };
  Pair encode_pair(std::string_view first, std::string_view second) const;

  // Valid UTF-8: bytes that form no character become U+FFFD. Control and unknown tokens are printed only with
  // `include_special`; ids outside the vocabulary are passed over.
  std::string decode(std::span<const int32_t> ids, bool include_special) const;
  // The bytes of one token, not always whole characters; empty for an id outside the vocabulary.
  std::string_view token_text(int32_t id) const;
  // The token that stands for exactly this text, special ones first; -1 when there is none.
  int32_t find_token(std::string_view text) const;

  VocabKind kind() const;
  const std::string& pre() const;  // empty unless byte-level BPE
  int32_t n_vocab() const;
  TokenType token_type(int32_t id) const;  // unused for an id outside the vocabulary
  bool is_control(int32_t id) const;
  bool is_eog(int32_t id) const;  // ends a generation

  const SpecialIds& special_ids() const;
  bool adds_bos() const;
  bool adds_eos() const;
  const std::vector<int32_t>& eog_ids() const;
  const std::vector<int32_t>& unused_ids() const;    // placeholders: mask them when sampling
  const std::vector<int32_t>& suppress_ids() const;  // the file asks to mask these too
  const std::vector<std::string>& warnings() const;  // what the user should know about this vocabulary

 private:
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// Text of a growing sequence of tokens, in pieces that are whole characters.
class StreamDecoder {
 public:
  // `continues_text`: the tokens follow others, so that the space of a first word is text and not the vocabulary's
  // mark of a beginning.
  explicit StreamDecoder(Tokenizer tokenizer, bool include_special = false, bool continues_text = false);

  // The text that is certain with this token; often empty. An id outside the vocabulary adds nothing.
  std::string push(int32_t id);
  // What is left: U+FFFD if a character was cut off.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  Utf8Stream utf8_;
  bool include_special_;
  bool drop_space_;
};

}  // namespace chimere

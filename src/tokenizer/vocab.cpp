// vocab.cpp  Reading a vocabulary from a file's metadata. The file is hostile input.
#include "tokenizer/vocab.h"

#include <algorithm>
#include <limits>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/unicode.h"

namespace chimere::tokenizer {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 24;  // a hundred times the largest published vocabulary

// A name from the file, short and printable whatever it holds.
std::string quoted(std::string_view name) {
  std::string out = "\"";
  Utf8Stream utf8;
  utf8.push(name.substr(0, 40), out);
  utf8.finish(out);
  return out + (name.size() > 40 ? "...\"" : "\"");
}

Result<VocabKind> kind_of(std::string_view model) {
  if (model == "gpt2") return VocabKind::bpe;
  if (model == "llama") return VocabKind::spm;
  if (model == "bert") return VocabKind::wordpiece;
  if (model == "t5") return VocabKind::unigram;
  if (model == "none" || model == "no_vocab") {
    return Error{Code::unsupported, "the file has no vocabulary (tokenizer.ggml.model is " + quoted(model) +
                                        "): it can be run on token ids but not on text"};
  }
  return Error{Code::unsupported, "tokenizer.ggml.model: expected gpt2, llama, bert or t5, found " + quoted(model) +
                                      ", which this program does not implement"};
}

// Normal tokens of SentencePiece and WordPiece write a space as U+2581.
void append_unmarked(std::string_view written, std::string& out) {
  for (size_t pos = 0; pos < written.size();) {
    const size_t mark = std::min(written.find(kSpaceMark, pos), written.size());
    out += written.substr(pos, mark - pos);
    if (mark == written.size()) break;
    out += ' ';
    pos = mark + kSpaceMark.size();
  }
}

}  // namespace

int byte_token_value(std::string_view written) {
  if (written.size() != 6 || written.substr(0, 3) != "<0x" || written[5] != '>') return -1;
  int value = 0;
  for (const char c : written.substr(3, 2)) {
    if (c >= '0' && c <= '9') {
      value = value * 16 + (c - '0');
    } else if (c >= 'A' && c <= 'F') {
      value = value * 16 + (c - 'A' + 10);
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + (c - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

Result<Vocab> Vocab::from_metadata(const gguf::Metadata& metadata) {
  Vocab vocab;
  TRY_ASSIGN(const std::string_view model, metadata.get_string("tokenizer.ggml.model"));
  TRY_ASSIGN(vocab.kind, kind_of(model));
  TRY_ASSIGN(const std::span<const std::string> written, metadata.get_strings("tokenizer.ggml.tokens"));
  if (written.empty() || written.size() > kMaxTokens) {
    return Error{Code::corrupt, "tokenizer.ggml.tokens: expected 1 to " + std::to_string(kMaxTokens) +
                                    " tokens, found " + std::to_string(written.size())};
  }
  if (vocab.kind == VocabKind::bpe) {
    vocab.pre = "default";
    if (metadata.contains("tokenizer.ggml.pre")) {
      TRY_ASSIGN(vocab.pre, metadata.get_string("tokenizer.ggml.pre"));
    }
    if (!PreTokenizer::named(vocab.pre)) {
      return Error{Code::unsupported,
                   "tokenizer.ggml.pre: unknown pre-tokenizer " + quoted(vocab.pre) + ": text would be split wrongly"};
    }
    if (vocab.pre == "default") {
      vocab.warnings.push_back(
          "tokenizer.ggml.pre is missing or \"default\": text may be split otherwise than in training");
    }
  }
  TRY(vocab.read_types(metadata, written));
  TRY(vocab.resolve_special(metadata, written));
  vocab.set_texts(written);
  return Result<Vocab>{std::move(vocab)};
}

Status Vocab::read_types(const gguf::Metadata& metadata, std::span<const std::string> written) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  types.assign(written.size(), TokenType::normal);
  if (metadata.contains(kKey)) {
    TRY_ASSIGN(const std::vector<int64_t> values,
               metadata.get_ints(kKey, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
    if (values.size() < written.size()) {
      return Error{Code::corrupt, std::string(kKey) + ": expected at least " + std::to_string(written.size()) +
                                      " entries, one for each token, found " + std::to_string(values.size())};
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (values[i] >= 1 && values[i] <= 6) types[i] = static_cast<TokenType>(values[i]);
    }
  } else if (kind == VocabKind::spm) {
    for (size_t i = 0; i < types.size(); ++i) {
      if (byte_token_value(written[i]) >= 0) types[i] = TokenType::byte;
    }
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == TokenType::byte && byte_token_value(written[i]) < 0) types[i] = TokenType::normal;
    if (types[i] == TokenType::unused || written[i].empty()) unused_ids.push_back(static_cast<int32_t>(i));
  }
  return Ok{};
}

void Vocab::set_texts(std::span<const std::string> written) {
  offsets_.reserve(written.size() + 1);
  offsets_.push_back(0);
  for (size_t i = 0; i < written.size(); ++i) {
    if (types[i] == TokenType::byte) {
      texts_ += static_cast<char>(byte_token_value(written[i]));
    } else if (types[i] != TokenType::normal) {
      texts_ += written[i];
    } else if (kind == VocabKind::bpe) {
      texts_ += bytes_of_alphabet(written[i]).value_or(written[i]);
    } else {
      append_unmarked(written[i], texts_);
    }
    offsets_.push_back(texts_.size());
  }
}

}  // namespace chimere::tokenizer

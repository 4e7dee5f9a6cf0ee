// tokenizer_metadata.h  tokenizer.json, tokenizer_config.json and the chat template, as metadata of a GGUF file.
//
// Three kinds: byte-level BPE ("gpt2"), BPE with byte fallback as SentencePiece makes it ("llama"), WordPiece ("bert").
// What a tokenizer splits text by must be one of the expressions our tokenizer knows (pre_tokenizer_names.h): a file
// that would be tokenised wrongly is not written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/gguf.h"

namespace chimere::convert {

// Texts of the files; empty where a file is absent.
struct TokenizerFiles {
  std::string tokenizer;          // tokenizer.json
  std::string config;             // tokenizer_config.json
  std::string chat_template;      // chat_template.jinja
  std::string model_config;       // config.json, for ids the tokenizer does not name
  std::string generation_config;  // generation_config.json: recommended sampling
};

Result<TokenizerFiles> read_tokenizer_files(const std::string& folder);

// Adds tokenizer.* and general.sampling.*. The vocabulary gets `n_vocab` entries, the rows of the embedding.
Status add_tokenizer(const TokenizerFiles& files, uint64_t n_vocab, gguf::Metadata& metadata);

}  // namespace chimere::convert

// fuzz_checkpoint.cpp  libFuzzer target of what `chimere convert` reads: any bytes are refused with a message or keep
// every promise. The first byte says as what the rest is read.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "convert/hf_config.h"
#include "convert/safetensors.h"
#include "convert/tokenizer_metadata.h"
#include "tokenizer/vocab.h"

namespace {

using namespace chimere;

void read_safetensors(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  const auto stored = convert::parse_safetensors(bytes, "shard");
  if (!stored) {
    CHECK(!stored.error().message.empty());
    return;
  }
  for (const convert::StoredTensor& tensor : stored->tensors) {
    CHECK(tensor.bytes.empty() ||
          (tensor.bytes.data() >= bytes.data() &&
           tensor.bytes.size() <= bytes.size() - static_cast<size_t>(tensor.bytes.data() - bytes.data())));
    if (const size_t size = bytes_of(tensor.type)) CHECK(tensor.elems() * size == tensor.bytes.size());
  }
}

void read_config(std::string_view text) {
  const auto config = convert::HfConfig::parse(text, "config.json");
  if (!config) return;
  for (const char* key : {"a", "a/b", "text_config", "rope_parameters/rope_theta", "architectures"}) {
    (void)config->has(key);
    (void)config->find_int(key);
    (void)config->find_float(key);
    (void)config->find_bool(key);
    (void)config->find_string(key);
    (void)config->find_ints(key);
    (void)config->find_floats(key);
    (void)config->find_strings(key);
  }
  (void)config->architecture();
}

void read_tokenizer(std::string_view text) {
  convert::TokenizerFiles files;
  const size_t cut = text.find('\n');
  files.tokenizer = text.substr(0, cut);
  if (cut != std::string_view::npos) {
    files.config = text.substr(cut + 1);
    files.model_config = files.generation_config = files.config;
  }
  gguf::Metadata metadata;
  if (!convert::add_tokenizer(files, 16, metadata)) return;
  // What was written is a vocabulary that loads.
  const auto vocab = tokenizer::Vocab::from_metadata(metadata);
  CHECK(bool(vocab) && vocab->size() == 16);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: read_safetensors(text); break;
    case 1: read_config(text); break;
    default: read_tokenizer(text);
  }
  return 0;
}

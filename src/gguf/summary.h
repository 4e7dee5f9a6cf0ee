// summary.h  A readable summary of an opened file: architecture, sizes by type, metadata as short text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/gguf.h"

namespace chimere::gguf {

struct TypeUse {
  DType type = DType::F32;
  uint64_t n_tensors = 0;
  uint64_t n_parameters = 0;
  uint64_t n_bytes = 0;
};

struct MetadataText {
  std::string key;
  std::string type;  // "u32", "string", "i32[4]"
  std::string text;  // "248320", "qwen35moe", "[248320 strings]"
};

struct Summary {
  std::string architecture;  // empty when the file does not say
  std::string model_name;    // general.name, likewise
  uint32_t version = 0;
  uint64_t n_shards = 0;
  uint64_t file_bytes = 0;    // all shards
  uint64_t tensor_bytes = 0;  // without padding and metadata
  uint64_t n_tensors = 0;
  uint64_t n_parameters = 0;
  std::vector<TypeUse> types;          // most bytes first
  std::vector<MetadataText> metadata;  // in file order

  double bits_per_weight() const { return n_parameters ? 8.0 * tensor_bytes / n_parameters : 0.0; }
};

Summary summarize(const File& file);

// Text from a file, made safe for a terminal or a log: valid UTF-8 stays, control characters and stray bytes become
// escapes, and what is longer than `max_bytes` is cut at a character and marked with "...".
std::string printable(std::string_view text, size_t max_bytes);

// A value as a short text: scalars as they are, long strings cut, arrays of up to 8 numbers in full, others counted.
std::string short_text(const Value& value);

}  // namespace chimere::gguf

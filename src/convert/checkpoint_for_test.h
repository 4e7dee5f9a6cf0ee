// checkpoint_for_test.h  Small checkpoints, written as a download would have them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/scratch_for_test.h"
#include "convert/convert.h"
#include "gguf/gguf.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

namespace chimere::convert::test {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Dims = std::vector<uint64_t>;

struct Saved {
  std::string dtype;
  Dims shape;
  std::string bytes;
};
using Tensors = std::map<std::string, Saved>;

inline uint64_t count(const Dims& shape) {
  uint64_t n = 1;
  for (const uint64_t d : shape) n *= d;
  return n;
}

inline std::string f32_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

inline std::string bf16_bytes(const std::vector<float>& values) {
  std::string out;
  for (const float v : values) {
    const uint16_t bits = f32_to_bf16(v);
    out.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  return out;
}

// Different for every name, the same in every run: multiples of 1/64 between -2 and 2, exact in all float types.
inline std::vector<float> made_up(const std::string& name, uint64_t n) {
  std::vector<float> values;
  uint64_t h = hash64(name);
  for (uint64_t i = 0; i < n; ++i) {
    h = hash_mix(h + 0x9e3779b97f4a7c15ULL);
    values.push_back(static_cast<float>(static_cast<int>(h % 257) - 128) / 64.0f);
  }
  return values;
}

inline void write_text(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
}

inline std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_shard(const fs::path& path, const Tensors& tensors, const Json& aliases = Json::object()) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  header["__metadata__"].update(aliases);
  std::string data;
  for (const auto& [name, saved] : tensors) {
    header[name] = {{"dtype", saved.dtype},
                    {"shape", saved.shape},
                    {"data_offsets", {data.size(), data.size() + saved.bytes.size()}}};
    data += saved.bytes;
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  write_text(path, std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data);
}

// A byte-level tokenizer of four tokens; the rest of the vocabulary is padding.
inline Json tiny_tokenizer() {
  return Json::parse(R"({
    "added_tokens": [{"id": 3, "content": "<|im_end|>", "special": true}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "use_regex": true},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})");
}

inline void write_checkpoint(const fs::path& folder, const Json& config, const Tensors& tensors) {
  write_text(folder / "config.json", config.dump());
  write_text(folder / "tokenizer.json", tiny_tokenizer().dump());
  write_text(folder / "tokenizer_config.json", R"({"eos_token": "<|im_end|>", "chat_template": "{{ messages }}"})");
  write_shard(folder / "model.safetensors", tensors);
}

inline Tensors made_up_tensors(const std::map<std::string, Dims>& shapes, bool bf16 = false) {
  Tensors tensors;
  for (const auto& [name, shape] : shapes) {
    const std::vector<float> values = made_up(name, count(shape));
    tensors[name] = {bf16 ? "BF16" : "F32", shape, bf16 ? bf16_bytes(values) : f32_bytes(values)};
  }
  return tensors;
}

inline bool keep_going(uint64_t, uint64_t) { return true; }

inline Result<ConvertReport> run(const fs::path& folder, const fs::path& out, DType type = DType::F32) {
  return convert({folder.string(), out.string(), type, ""}, keep_going);
}

// All values of a tensor of a file.
inline std::vector<float> values_of(const gguf::File& file, const std::string& name) {
  const TensorView* t = file.find(name);
  EXPECT_NE(t, nullptr) << name;
  if (!t) return {};
  std::vector<float> out(t->elems());
  for (uint64_t r = 0; r < t->rows(); ++r) {
    dequantize_row(t->type, t->row(r), out.data() + r * t->ne[0], static_cast<int64_t>(t->ne[0]));
  }
  return out;
}

}  // namespace chimere::convert::test

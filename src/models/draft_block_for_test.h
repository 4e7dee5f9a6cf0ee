// draft_block_for_test.h  Fixtures of Qwen3.5 with a draft block behind the trunk, as files with MTP have it.
#pragma once

#include <cmath>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "tensor/dequantize.h"
#include "tensor/random_blocks.h"

namespace chimere::fixture {

struct DraftBlock {
  bool has_norm = true;   // nextn.shared_head_norm; else the trunk's serves
  bool has_ends = false;  // nextn.embed_tokens and nextn.shared_head_head; else the trunk's serve
};

// The bytes of the file. Block 4: the tensors of the last block, an attention block, each value changed a little, and
// random nextn.* ones.
inline Result<std::vector<std::byte>> with_draft_block(const std::filesystem::path& folder,
                                                       const DraftBlock& block = {}) {
  TRY_ASSIGN(const gguf::File file, gguf::File::open((folder / "model.gguf").string()));
  gguf::Writer writer;
  writer.metadata() = file.metadata();
  TRY_ASSIGN(const std::string_view name, file.metadata().get_string("general.architecture"));
  const std::string arch(name);
  writer.metadata().set_int(arch + ".block_count", gguf::ValueType::u32, 5);
  writer.metadata().set_int(arch + ".nextn_predict_layers", gguf::ValueType::u32, 1);
  std::deque<std::vector<float>> kept;
  const auto add = [&](const std::string& to, const Shape& ne, std::vector<float> values) {
    return writer.add_tensor(to, DType::F32, ne, std::as_bytes(std::span(kept.emplace_back(std::move(values)))));
  };
  for (const TensorView& t : file.tensors()) {
    TRY(writer.add_tensor(std::string(t.name), t.type, t.ne, std::span(t.data, t.size_bytes())));
  }
  for (const TensorView& t : file.tensors()) {
    if (!t.name.starts_with("blk.3.")) continue;
    std::vector<float> values(t.elems());
    dequantize_row(t.type, t.data, values.data(), static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) values[i] *= 1.0f + 0.3f * std::sin(static_cast<float>(i % 1009));
    TRY(add("blk.4." + std::string(t.name.substr(6)), t.ne, std::move(values)));
  }
  const TensorView* table = file.find("token_embd.weight");
  const uint64_t d = table->ne[0], v = table->ne[1];
  const auto random = [](uint64_t n, uint64_t seed, float mean, float stddev) {
    std::vector<float> values(n);
    random_blocks(DType::F32, reinterpret_cast<std::byte*>(values.data()), static_cast<int64_t>(n), seed, stddev);
    for (float& x : values) x += mean;
    return values;
  };
  TRY(add("blk.4.nextn.eh_proj.weight", {2 * d, d, 1, 1}, random(2 * d * d, 1, 0, 0.09f)));
  TRY(add("blk.4.nextn.enorm.weight", {d, 1, 1, 1}, random(d, 2, 1, 0.2f)));
  TRY(add("blk.4.nextn.hnorm.weight", {d, 1, 1, 1}, random(d, 3, 1, 0.2f)));
  if (block.has_norm) TRY(add("blk.4.nextn.shared_head_norm.weight", {d, 1, 1, 1}, random(d, 4, 1, 0.2f)));
  if (block.has_ends) {
    TRY(add("blk.4.nextn.embed_tokens.weight", {d, v, 1, 1}, random(d * v, 5, 0, 1)));
    TRY(add("blk.4.nextn.shared_head_head.weight", {d, v, 1, 1}, random(d * v, 6, 0, 0.3f)));
  }
  return writer.write_memory();
}

}  // namespace chimere::fixture

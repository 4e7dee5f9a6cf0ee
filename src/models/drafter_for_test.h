// drafter_for_test.h  DFlash drafters with random weights, for any model.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "tensor/random_blocks.h"

namespace chimere::fixture {

struct DrafterShape {
  uint64_t width, n_vocab;
  std::vector<int32_t> target_layers;  // inputs of layers: i + 1 is the output of layer i
  int n_layers = 2;
  uint64_t n_heads = 4, n_kv_heads = 2, head_dim = 16, ffn = 40;
  int block = 5;
  int mask_token = 3;
  int window = 0;  // of the last layer
};

// The file, before it is written. `kept` holds its tensors.
inline Result<gguf::Writer> drafter_writer(const DrafterShape& s, std::deque<std::vector<float>>& kept) {
  gguf::Writer writer;
  gguf::Metadata& m = writer.metadata();
  const auto set = [&](const std::string& key, int64_t value) { m.set_int(key, gguf::ValueType::u32, value); };
  m.set_string("general.architecture", "dflash");
  set("dflash.block_count", s.n_layers);
  set("dflash.context_length", 4096);
  set("dflash.embedding_length", static_cast<int64_t>(s.width));
  set("dflash.feed_forward_length", static_cast<int64_t>(s.ffn));
  set("dflash.attention.head_count", static_cast<int64_t>(s.n_heads));
  set("dflash.attention.head_count_kv", static_cast<int64_t>(s.n_kv_heads));
  set("dflash.attention.key_length", static_cast<int64_t>(s.head_dim));
  set("dflash.attention.value_length", static_cast<int64_t>(s.head_dim));
  m.set_float("dflash.attention.layer_norm_rms_epsilon", 1e-6);
  m.set_float("dflash.rope.freq_base", 10000.0);
  set("dflash.vocab_size", static_cast<int64_t>(s.n_vocab));
  set("dflash.block_size", s.block);
  set("tokenizer.ggml.mask_token_id", s.mask_token);
  const auto set_list = [&](const std::string& key, std::vector<int64_t> values) {
    m.set(key, {gguf::ValueType::i32, true, std::move(values)});
  };
  set_list("dflash.target_layers", {s.target_layers.begin(), s.target_layers.end()});
  if (s.window > 0) {
    set("dflash.attention.sliding_window", s.window);
    std::vector<int64_t> pattern(static_cast<size_t>(s.n_layers), 0);
    pattern.back() = 1;
    set_list("dflash.attention.sliding_window_pattern", std::move(pattern));
  }
  uint64_t seed = 1;
  const auto add = [&](const std::string& name, uint64_t in, uint64_t out, float mean, float spread) {
    std::vector<float> values(in * out);
    random_blocks(DType::F32, reinterpret_cast<std::byte*>(values.data()), static_cast<int64_t>(values.size()), seed++,
                  spread);
    for (float& x : values) x += mean;
    return writer.add_tensor(name, DType::F32, {in, out, 1, 1}, std::as_bytes(std::span(kept.emplace_back(values))));
  };
  const uint64_t d = s.width, q = s.n_heads * s.head_dim, kv = s.n_kv_heads * s.head_dim;
  const auto norm = [&](const std::string& name, uint64_t n) { return add(name, n, 1, 1.0f, 0.2f); };
  TRY(add("fc.weight", s.target_layers.size() * d, d, 0, 0.1f));
  TRY(norm("enc.output_norm.weight", d));
  TRY(norm("output_norm.weight", d));
  for (int i = 0; i < s.n_layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    TRY(norm(at + "attn_norm.weight", d));
    TRY(norm(at + "ffn_norm.weight", d));
    TRY(norm(at + "attn_q_norm.weight", s.head_dim));
    TRY(norm(at + "attn_k_norm.weight", s.head_dim));
    TRY(add(at + "attn_q.weight", d, q, 0, 0.2f));
    TRY(add(at + "attn_k.weight", d, kv, 0, 0.2f));
    TRY(add(at + "attn_v.weight", d, kv, 0, 0.2f));
    TRY(add(at + "attn_output.weight", q, d, 0, 0.2f));
    TRY(add(at + "ffn_gate.weight", d, s.ffn, 0, 0.2f));
    TRY(add(at + "ffn_up.weight", d, s.ffn, 0, 0.2f));
    TRY(add(at + "ffn_down.weight", s.ffn, d, 0, 0.2f));
  }
  return Result<gguf::Writer>{std::move(writer)};
}

inline Result<std::vector<std::byte>> drafter_bytes(const DrafterShape& s) {
  std::deque<std::vector<float>> kept;
  TRY_ASSIGN(const gguf::Writer writer, drafter_writer(s, kept));
  return writer.write_memory();
}

// A file in `folder` for the model in `model`, with taps after its first and its last layer.
inline Result<std::string> write_drafter(const std::filesystem::path& folder, const std::filesystem::path& model,
                                         DrafterShape s = {0, 0, {}}) {
  TRY_ASSIGN(const gguf::File file, gguf::File::open(model.string()));
  const TensorView* table = file.find("token_embd.weight");
  s.width = table->ne[0];
  s.n_vocab = table->ne[1];
  TRY_ASSIGN(const std::string_view arch, file.metadata().get_string("general.architecture"));
  TRY_ASSIGN(const int64_t n_layers, file.metadata().get_int(std::string(arch) + ".block_count", 2, 512));
  TRY_ASSIGN(const int64_t n_mtp,
             file.metadata().get_int_or(std::string(arch) + ".nextn_predict_layers", 0, n_layers - 1, 0));
  if (s.target_layers.empty()) s.target_layers = {1, static_cast<int32_t>(n_layers - n_mtp)};
  TRY_ASSIGN(const std::vector<std::byte> bytes, drafter_bytes(s));
  const std::filesystem::path path = folder / "drafter.gguf";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

}  // namespace chimere::fixture

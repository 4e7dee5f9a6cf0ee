// files_for_test.h  Small model-like files, and the fixture model that tests quantise.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gguf/writer.h"

namespace chimere::quantizer::fixture {

inline std::string model_path(const std::string& name = "qwen3_5-A") {
  return std::string(CHIMERE_TESTS_DIR) + "/golden/models/" + name + "/model.gguf";
}

inline std::vector<float> normal_values(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

struct Tensor {
  std::string name;
  Shape ne;
  std::vector<float> values;
};

// F32, in this order.
inline void write_tensors(const std::string& path, const std::vector<Tensor>& tensors) {
  gguf::Writer writer;
  writer.metadata().set_string("general.architecture", "qwen3moe");
  writer.metadata().set_int("qwen3moe.expert_used_count", gguf::ValueType::u32, 2);
  for (const Tensor& t : tensors) {
    ASSERT_TRUE(writer.add_tensor(t.name, DType::F32, t.ne, std::as_bytes(std::span(t.values))));
  }
  ASSERT_TRUE(writer.write_file(path));
}

// One tensor of each kind that plans treat differently.
inline std::vector<Tensor> mixed_tensors() {
  std::vector<Tensor> tensors = {
      {"token_embd.weight", {256, 40, 1, 1}, normal_values(256 * 40, 1)},
      {"output.weight", {256, 40, 1, 1}, normal_values(256 * 40, 2)},
      {"output_norm.weight", {256, 1, 1, 1}, normal_values(256, 3)},
      {"blk.0.ffn_gate_inp.weight", {256, 4, 1, 1}, normal_values(256 * 4, 4)},
      {"blk.0.ffn_down_exps.weight", {256, 8, 4, 1}, normal_values(256 * 8 * 4, 5)},
      {"blk.0.attn_q.weight", {96, 10, 1, 1}, normal_values(96 * 10, 6)},
      {"blk.0.ssm_out.weight", {256, 8, 1, 1}, normal_values(256 * 8, 7)},
      {"blk.1.attn_k.weight", {1, 16, 1, 1}, normal_values(16, 8)},
  };
  std::fill_n(tensors[6].values.begin(), 512, 0.0f);  // two rows of zeros
  return tensors;
}

}  // namespace chimere::quantizer::fixture

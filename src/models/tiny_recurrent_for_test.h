// tiny_recurrent_for_test.h  Models with recurrent layers, tiny shapes and random weights, for architectures of which the
// repository keeps no fixture: what going back does to a state does not depend on what the weights were trained for.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/scratch_for_test.h"
#include "gguf/writer.h"
#include "models/fixture_for_test.h"
#include "models/registry.h"
#include "models/weight_source.h"
#include "tensor/random_blocks.h"

namespace chimere::fixture {

// Their names, as folders have them.
inline std::vector<std::string> tiny_recurrent_models() {
  return {"falcon_h1-tiny", "granitehybrid-tiny", "granitehybrid-moe-tiny", "jamba-tiny",
          "mamba2-tiny",    "nemotron_h-tiny",    "qwen3next-tiny"};
}

// Makes each tensor that the architecture asks for.
class TinySource final : public models::WeightSource {
 public:
  explicit TinySource(const std::string& name) {
    const auto is = [&](const char* begin) { return name.starts_with(begin); };
    arch_ = is("falcon_h1") ? "falcon-h1" : name.substr(0, name.find('-'));
    metadata_.set_string("general.architecture", arch_);
    metadata_.set_string("tokenizer.ggml.model", "no_vocab");
    set("block_count", kLayers);
    set("context_length", 4096);
    set("embedding_length", 64);
    set("vocab_size", 256);
    set("ssm.conv_kernel", 4);
    set("ssm.state_size", 16);
    set("ssm.inner_size", 128);
    set("ssm.group_count", 2);
    set("ssm.time_step_rank", 8);  // of Mamba-1 its width, else heads
    metadata_.set_float(arch_ + ".attention.layer_norm_rms_epsilon", 1e-5);
    if (is("mamba2")) {
      set("attention.head_count", 0);
      return;
    }
    set("attention.head_count", 4);
    set("attention.key_length", 16);
    set("attention.value_length", 16);
    // Recurrent, attention, recurrent, and a feed-forward or attention once more. Both at once in all layers of Falcon-H1.
    const bool has_own_blocks = is("nemotron_h");
    std::vector<int64_t> kv_heads{0, 2, 0, has_own_blocks ? 0 : 2};
    if (is("falcon_h1") || is("qwen3next")) kv_heads.assign(kLayers, 2);
    set_list("attention.head_count_kv", std::move(kv_heads));
    set_list("feed_forward_length",
             has_own_blocks ? std::vector<int64_t>{0, 0, 0, 96} : std::vector<int64_t>(kLayers, 96));
    if (is("qwen3next")) set("full_attention_interval", 2);
    if (!is("granitehybrid-moe") && !is("jamba") && !is("qwen3next")) return;
    set("expert_count", 4);
    set("expert_used_count", 2);
    set("expert_feed_forward_length", 32);
    if (!is("jamba")) set("expert_shared_feed_forward_length", 32);
  }

  const gguf::Metadata& metadata() const override { return metadata_; }
  void taken(const TensorView&) override {}
  const TensorView* find(std::string_view name, const Shape& wanted, bool required) override {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) return &found->second;
    // Every second layer of Jamba has experts.
    const bool has_router = arch_ == "jamba" && (name.starts_with("blk.1.") || name.starts_with("blk.3.")) &&
                            name.ends_with("ffn_gate_inp.weight");
    if (!required) return has_router ? &router_is_there_ : nullptr;
    TensorView& t = tensors_[std::string(name)];
    t.name = tensors_.find(name)->first;
    t.type = DType::F32;
    t.ne = wanted;
    std::vector<float>& values = values_.emplace_back(t.elems());
    random_blocks(DType::F32, reinterpret_cast<std::byte*>(values.data()), static_cast<int64_t>(values.size()),
                  hash64(t.name), 1.0f);
    for (float& x : values) {
      if (name.ends_with("norm.weight")) {
        x = 1 + 0.2f * x;
      } else if (name.ends_with("ssm_a")) {
        x = -std::exp(0.5f * std::tanh(x));  // states fade
      } else {
        x *= 0.15f;
      }
    }
    t.data = reinterpret_cast<const std::byte*>(values.data());
    return &t;
  }

  Status write(const std::string& path) const {
    gguf::Writer writer;
    writer.metadata() = metadata_;
    for (const auto& [name, t] : tensors_) {
      TRY(writer.add_tensor(name, t.type, t.ne, std::span(t.data, t.size_bytes())));
    }
    return writer.write_file(path);
  }

 private:
  static constexpr int kLayers = 4;

  void set(const char* key, int64_t value) { metadata_.set_int(arch_ + "." + key, gguf::ValueType::u32, value); }
  void set_list(const char* key, std::vector<int64_t> values) {
    metadata_.set(arch_ + "." + key, {gguf::ValueType::i32, true, std::move(values)});
  }

  std::string arch_;
  gguf::Metadata metadata_;
  const TensorView router_is_there_{};
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::deque<std::vector<float>> values_;
};

// Writes model.gguf into `folder`.
inline Status write_tiny_recurrent(const std::string& name, const std::filesystem::path& folder) {
  TinySource source(name);
  TRY(models::build_program(source));  // asks for all tensors
  return source.write((folder / "model.gguf").string());
}

// Every model with a recurrent state: fixtures, by their folders, and those that are made, by their names.
inline std::vector<std::string> recurrent_models() {
  std::vector<std::string> all = tiny_recurrent_models();
  for (const fs::path& folder : models_where(gives_logits)) {
    const std::string name = folder.filename().string();
    const auto is = [&](const char* begin) { return name.starts_with(begin); };
    const bool is_recurrent = is("bamba") || is("falcon") || is("granite") || is("jamba") || is("mamba") ||
                              is("nemotron") || is("qwen3_5") || is("qwen3_next");
    if (is_recurrent) all.push_back(folder.string());
  }
  return all;
}

// The folder of one of them, which is made where it has to be.
inline fs::path recurrent_folder(const std::string& model) {
  if (fs::path(model).is_absolute()) return model;
  fs::path folder = scratch_folder(model);
  const Status written = write_tiny_recurrent(model, folder);
  EXPECT_TRUE(written) << written.error().message;
  return folder;
}

inline std::string recurrent_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = fs::path(info.param).filename().string() + "_" + std::to_string(info.index);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace chimere::fixture

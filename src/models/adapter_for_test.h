// adapter_for_test.h  LoRA adapters of the tiny models, and the same changes merged into their weights.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/scratch_for_test.h"
#include "gguf/writer.h"
#include "models/adapter_file.h"
#include "models/fixture_for_test.h"
#include "tensor/dequantize.h"

namespace chimere::fixture {

inline constexpr int kAdapterRank = 3;
inline constexpr double kAdapterAlpha = 6;

// A matrix that adapters usually change: projections and dense feed-forwards of the blocks.
inline bool is_adapted(const TensorView& tensor) {
  for (const char* part : {"attn_q.weight", "attn_v.weight", "attn_output.weight", "attn_qkv.weight", "ssm_out.weight",
                           "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}) {
    if (tensor.name.ends_with(part)) return true;
  }
  return false;
}

// Small enough not to drown the model, large enough to change what it says.
inline std::vector<float> adapter_values(const std::string& name, int seed, uint64_t n, uint64_t width) {
  uint64_t h = hash64(name, static_cast<uint64_t>(seed));
  std::vector<float> values;
  for (uint64_t i = 0; i < n; ++i) {
    h = hash_mix(h + 0x9e3779b97f4a7c15ULL);
    values.push_back((static_cast<float>(h % 2001) / 1000.0f - 1.0f) * 0.5f / std::sqrt(static_cast<float>(width)));
  }
  return values;
}

struct AdapterPart {
  std::string name;
  uint64_t in, out;
  std::vector<float> a, b;  // [rank][in], [out][rank]
};

inline std::vector<AdapterPart> adapter_parts(const gguf::File& model, int seed) {
  std::vector<AdapterPart> parts;
  for (const TensorView& t : model.tensors()) {
    if (!is_adapted(t)) continue;
    const std::string name(t.name);
    parts.push_back({name, t.ne[0], t.ne[1], adapter_values(name + "a", seed, kAdapterRank * t.ne[0], t.ne[0]),
                     adapter_values(name + "b", seed, kAdapterRank * t.ne[1], 1)});
  }
  // The head, which may be the table of embeddings.
  const TensorView* head = model.find("output.weight") ? model.find("output.weight") : model.find("token_embd.weight");
  parts.push_back({"output.weight", head->ne[0], head->ne[1],
                   adapter_values("head a", seed, kAdapterRank * head->ne[0], head->ne[0]),
                   adapter_values("head b", seed, kAdapterRank * head->ne[1], 1)});
  return parts;
}

inline std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// Writes an adapter of the model of a folder and returns its path.
inline std::string write_adapter(const fs::path& folder, int seed, const fs::path& out) {
  const auto model = gguf::File::open((folder / "model.gguf").string());
  EXPECT_TRUE(model);
  const std::vector<AdapterPart> parts = adapter_parts(*model, seed);
  gguf::Writer writer;
  writer.metadata().set_string("general.type", "adapter");
  writer.metadata().set_string("general.architecture",
                               std::string(*model->metadata().get_string("general.architecture")));
  writer.metadata().set_string("adapter.type", "lora");
  writer.metadata().set_float("adapter.lora.alpha", kAdapterAlpha);
  for (const AdapterPart& p : parts) {
    EXPECT_TRUE(writer.add_tensor(p.name + ".lora_a", DType::F32, {p.in, kAdapterRank, 1, 1}, bytes_of(p.a)));
    EXPECT_TRUE(writer.add_tensor(p.name + ".lora_b", DType::F32, {kAdapterRank, p.out, 1, 1}, bytes_of(p.b)));
  }
  EXPECT_TRUE(writer.write_file(out.string()));
  return out.string();
}

// The model with the adapter's changes in its weights, as F32.
inline void write_merged(const fs::path& folder, int seed, double scale, const fs::path& out) {
  const auto model = gguf::File::open((folder / "model.gguf").string());
  ASSERT_TRUE(model);
  const std::vector<AdapterPart> parts = adapter_parts(*model, seed);
  std::vector<std::vector<float>> merged;
  merged.reserve(parts.size());
  gguf::Writer writer;
  writer.metadata() = model->metadata();
  const auto add = [&](const std::string& name, const TensorView& t) {
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const AdapterPart& p) { return p.name == name; });
    if (part == parts.end()) {
      ASSERT_TRUE(writer.add_tensor(name, t.type, t.ne, {t.data, t.size_bytes()}));
      return;
    }
    std::vector<float>& w = merged.emplace_back(t.elems());
    for (uint64_t o = 0; o < part->out; ++o) {
      float* row = w.data() + o * part->in;
      dequantize_row(t.type, t.row(o), row, static_cast<int64_t>(part->in));
      for (uint64_t i = 0; i < part->in; ++i) {
        double change = 0;
        for (uint64_t r = 0; r < kAdapterRank; ++r) {
          change += static_cast<double>(part->b[o * kAdapterRank + r]) * part->a[r * part->in + i];
        }
        row[i] = static_cast<float>(row[i] + scale * kAdapterAlpha / kAdapterRank * change);
      }
    }
    ASSERT_TRUE(writer.add_tensor(name, DType::F32, t.ne, bytes_of(w)));
  };
  for (const TensorView& t : model->tensors()) add(std::string(t.name), t);
  if (!model->find("output.weight")) add("output.weight", *model->find("token_embd.weight"));
  ASSERT_TRUE(writer.write_file(out.string()));
}

// An adapter of the model of a folder, held by an executable of that model.
inline std::shared_ptr<const Adapter> adapter_on(Executable& executable, const fs::path& folder, int seed,
                                                 const fs::path& scratch) {
  const std::string name = "adapter" + std::to_string(seed);
  const auto file = gguf::File::open(write_adapter(folder, seed, scratch / (name + ".gguf")));
  EXPECT_TRUE(file);
  const auto model = gguf::File::open((folder / "model.gguf").string());
  EXPECT_TRUE(model);
  auto adapter = models::read_adapter(*file, name, executable.program(),
                                      std::string(*model->metadata().get_string("general.architecture")));
  EXPECT_TRUE(adapter) << adapter.error().message;
  auto held = executable.hold_adapter(**adapter);
  EXPECT_TRUE(held) << held.error().message;
  (*adapter)->held = std::move(*held);
  return *adapter;
}

}  // namespace chimere::fixture

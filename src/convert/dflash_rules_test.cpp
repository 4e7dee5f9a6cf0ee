// dflash_rules_test.cpp  A drafter with the names it is published under and made-up weights becomes a file that a model is
// loaded with.
#include "convert/checkpoint_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::convert::test {
namespace {

constexpr uint64_t kDraftHeads = 4, kDraftKvHeads = 2, kDraftHeadDim = 16, kDraftFf = 48;

struct PublishedDrafter {
  Json config;
  std::map<std::string, Dims> shapes;
};

// For the model of a file, which has at least five layers or gets no taps named.
PublishedDrafter published(uint64_t d, uint64_t n_vocab, uint64_t n_taps) {
  PublishedDrafter p;
  p.config = {{"architectures", {"DFlashDraftModel"}},
              {"model_type", "qwen3"},
              {"block_size", 8},
              {"dflash_config", {{"mask_token_id", 5}, {"target_layer_ids", Json::array()}}},
              {"num_target_layers", 4},
              {"hidden_size", d},
              {"intermediate_size", kDraftFf},
              {"num_hidden_layers", 2},
              {"num_attention_heads", kDraftHeads},
              {"num_key_value_heads", kDraftKvHeads},
              {"head_dim", kDraftHeadDim},
              {"max_position_embeddings", 4096},
              {"rms_norm_eps", 1e-6},
              {"rope_theta", 1e7},
              {"layer_types", {"full_attention", "full_attention"}},
              {"use_sliding_window", false},
              {"sliding_window", nullptr},
              {"tie_word_embeddings", true},
              {"vocab_size", n_vocab}};
  for (uint64_t i = 0; i < n_taps; ++i) p.config["dflash_config"]["target_layer_ids"].push_back(2 * i);
  p.shapes = {{"fc.weight", {d, n_taps * d}}, {"hidden_norm.weight", {d}}, {"norm.weight", {d}}};
  for (const char* layer : {"layers.0.", "layers.1."}) {
    const std::string in = layer;
    p.shapes[in + "input_layernorm.weight"] = p.shapes[in + "post_attention_layernorm.weight"] = {d};
    p.shapes[in + "self_attn.q_proj.weight"] = {kDraftHeads * kDraftHeadDim, d};
    p.shapes[in + "self_attn.k_proj.weight"] =
        p.shapes[in + "self_attn.v_proj.weight"] = {kDraftKvHeads * kDraftHeadDim, d};
    p.shapes[in + "self_attn.o_proj.weight"] = {d, kDraftHeads * kDraftHeadDim};
    p.shapes[in + "self_attn.q_norm.weight"] = p.shapes[in + "self_attn.k_norm.weight"] = {kDraftHeadDim};
    p.shapes[in + "mlp.gate_proj.weight"] = p.shapes[in + "mlp.up_proj.weight"] = {kDraftFf, d};
    p.shapes[in + "mlp.down_proj.weight"] = {d, kDraftFf};
  }
  return p;
}

// As published: no tokenizer beside it.
fs::path write_published(const PublishedDrafter& p, bool bf16 = true) {
  const fs::path folder = fixture::scratch_folder("drafter");
  write_text(folder / "config.json", p.config.dump());
  write_shard(folder / "model.safetensors", made_up_tensors(p.shapes, bf16));
  return folder;
}

TEST(DFlashRules, APublishedDrafterIsOneThatAModelTakes) {
  const fs::path model = fixture::kept("qwen3_5_moe-B-untied") / "model.gguf";
  const auto opened = gguf::File::open(model.string());
  ASSERT_TRUE(opened);
  const uint64_t d = opened->find("token_embd.weight")->ne[0], v = opened->find("token_embd.weight")->ne[1];
  const fs::path folder = write_published(published(d, v, 2));
  for (const DType type : {DType::F32, DType::BF16}) {
    const auto report = run(folder, folder / "out.gguf", type);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->architecture, "dflash");
    EXPECT_TRUE(report->left_out.empty()) << report->left_out.front();
    const auto file = gguf::File::open((folder / "out.gguf").string());
    ASSERT_TRUE(file) << file.error().message;
    const gguf::Metadata& m = file->metadata();
    EXPECT_EQ(*m.get_ints("dflash.target_layers", 0, 99), (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(*m.get_int("dflash.block_size", 0, 99), 8);
    EXPECT_EQ(*m.get_int("tokenizer.ggml.mask_token_id", 0, 99), 5);
    EXPECT_EQ(*m.get_float("dflash.rope.freq_base"), 1e7);
    EXPECT_EQ(values_of(*file, "fc.weight"), made_up("fc.weight", 2 * d * d));
    EXPECT_EQ(values_of(*file, "enc.output_norm.weight"), made_up("hidden_norm.weight", d));
    EXPECT_EQ(values_of(*file, "output_norm.weight"), made_up("norm.weight", d));
    EXPECT_EQ(values_of(*file, "blk.1.attn_k.weight"),
              made_up("layers.1.self_attn.k_proj.weight", kDraftKvHeads * kDraftHeadDim * d));
    EXPECT_EQ(values_of(*file, "blk.0.ffn_norm.weight"), made_up("layers.0.post_attention_layernorm.weight", d));
    LoadOptions options;
    options.drafter = (folder / "out.gguf").string();
    const auto loaded = models::Model::load(model.string(), models::BackendKind::cpu, options);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_TRUE((*loaded)->draft_blocks());
    EXPECT_EQ((*loaded)->draft_blocks()->n_rows, 8);
    EXPECT_EQ((*loaded)->draft_blocks()->mask_token, 5);
  }
}

TEST(DFlashRules, LayersThatAreNotNamedAreSpreadEvenly) {
  PublishedDrafter p = published(32, 40, 2);
  p.config["dflash_config"].erase("target_layer_ids");
  p.config["num_target_layers"] = 40;
  const fs::path folder = write_published(p);
  const auto report = run(folder, folder / "out.gguf");
  ASSERT_TRUE(report) << report.error().message;
  const auto file = gguf::File::open((folder / "out.gguf").string());
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->metadata().get_ints("dflash.target_layers", 0, 99), (std::vector<int64_t>{2, 38}));
}

TEST(DFlashRules, SlidingWindowsAreKept) {
  PublishedDrafter p = published(32, 40, 2);
  p.config["use_sliding_window"] = true;
  p.config["sliding_window"] = 2048;
  p.config["layer_types"] = {"sliding_attention", "full_attention"};
  const fs::path folder = write_published(p);
  const auto report = run(folder, folder / "out.gguf");
  ASSERT_TRUE(report) << report.error().message;
  const auto file = gguf::File::open((folder / "out.gguf").string());
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->metadata().get_int("dflash.attention.sliding_window", 0, 9999), 2048);
  EXPECT_EQ(*file->metadata().get_ints("dflash.attention.sliding_window_pattern", 0, 1), (std::vector<int64_t>{1, 0}));
}

TEST(DFlashRules, WhatIsMissingOrWrongIsNamed) {
  const auto refusal = [](const PublishedDrafter& p) {
    const fs::path folder = write_published(p);
    const auto report = run(folder, folder / "out.gguf");
    EXPECT_FALSE(fs::exists(folder / "out.gguf"));
    return report ? std::string("converted") : report.error().message;
  };
  PublishedDrafter p = published(32, 40, 2);
  p.shapes.erase("layers.1.self_attn.k_norm.weight");
  EXPECT_NE(refusal(p).find("layers.1.self_attn.k_norm.weight"), std::string::npos);
  p = published(32, 40, 2);
  p.config["dflash_config"].erase("mask_token_id");
  EXPECT_NE(refusal(p).find("mask_token_id"), std::string::npos);
  p = published(32, 40, 2);
  p.config["dflash_config"]["mask_token_id"] = 40;
  EXPECT_NE(refusal(p).find("mask_token_id"), std::string::npos);
  p = published(32, 40, 2);
  p.config["block_size"] = 32;
  EXPECT_NE(refusal(p).find("block_size"), std::string::npos);
  p = published(32, 40, 2);
  p.shapes["fc.weight"] = {32, 3 * 32};
  EXPECT_NE(refusal(p).find("fc.weight"), std::string::npos);
}

}  // namespace
}  // namespace chimere::convert::test

// What the rules of single families do to values, against the model's own definition written out here: MXFP4 blocks
// of gpt-oss, the fused projections of Qwen3-Next, the draft block of Qwen3.5, the multipliers of Falcon-H1.
#include <cmath>

#include "convert/shapes_for_test.h"
#include "models/registry.h"

namespace chimere::convert::test {
namespace {

gguf::File converted(const Json& config, const Tensors& tensors) {
  const fs::path folder = fixture::scratch_folder("hf");
  write_checkpoint(folder, config, tensors);
  const auto report = run(folder, folder / "out.gguf");
  EXPECT_TRUE(report) << report.error().message;
  auto file = gguf::File::open((folder / "out.gguf").string());
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

Tensors tensors_of(const Json& config) {
  return made_up_tensors(Shapes(config).all(config["architectures"][0].get<std::string>()));
}

constexpr uint64_t kExperts = 3, kWidth = 64, kFf = 32;

Json gpt_oss_config() {
  return {{"architectures", {"GptOssForCausalLM"}},
          {"num_hidden_layers", 1},
          {"num_local_experts", kExperts},
          {"num_experts_per_tok", 2},
          {"vocab_size", 40},
          {"hidden_size", kWidth},
          {"intermediate_size", kFf},
          {"head_dim", 16},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"sliding_window", 32},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 150000.0}};
}

// MXFP4 as a checkpoint has it: [matrices, rows, columns / 32, 16] bytes of two codes, and a power of two for each 32.
struct Mxfp4 {
  uint64_t rows, columns;
  std::string codes, scales;

  Mxfp4(const std::string& name, uint64_t n_rows, uint64_t n_columns) : rows(n_rows), columns(n_columns) {
    uint64_t h = hash64(name);
    const auto next = [&h] { return h = hash_mix(h + 1); };
    for (uint64_t i = 0; i < kExperts * rows * columns / 2; ++i) codes += static_cast<char>(next() & 255);
    for (uint64_t i = 0; i < kExperts * rows * columns / 32; ++i) scales += static_cast<char>(117 + next() % 20);
  }
  void save(Tensors& tensors, const std::string& name) const {
    tensors[name + "_blocks"] = {"U8", {kExperts, rows, columns / 32, 16}, codes};
    tensors[name + "_scales"] = {"U8", {kExperts, rows, columns / 32}, scales};
  }
  // A code is a sign, two bits of exponent, one of mantissa; of two in a byte the lower half is the first.
  float value(uint64_t e, uint64_t row, uint64_t column) const {
    const uint64_t at = (e * rows + row) * columns + column;
    const int code = static_cast<unsigned char>(codes[at / 2]) >> (column % 2 * 4) & 15;
    const int exponent = code >> 1 & 3, mantissa = code & 1;
    const double size = exponent == 0 ? 0.5 * mantissa : std::ldexp(1 + 0.5 * mantissa, exponent - 1);
    const int scale = static_cast<unsigned char>(scales[at / 32]) - 127;
    return static_cast<float>(std::ldexp(code & 8 ? -size : size, scale));
  }
};

TEST(FamilyValues, Mxfp4ExpertsOfGptOssKeepTheirValues) {
  const std::string in = "model.layers.0.mlp.experts.";
  Tensors tensors = tensors_of(gpt_oss_config());
  tensors.erase(in + "gate_up_proj");
  tensors.erase(in + "down_proj");
  const Mxfp4 fused("fused", 2 * kFf, kWidth), back("back", kWidth, kFf);
  fused.save(tensors, in + "gate_up_proj");
  back.save(tensors, in + "down_proj");
  const gguf::File file = converted(gpt_oss_config(), tensors);
  for (const char* name : {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight", "blk.0.ffn_down_exps.weight"}) {
    ASSERT_NE(file.find(name), nullptr) << name;
    EXPECT_EQ(file.find(name)->type, DType::MXFP4) << name;
  }
  const std::vector<float> gate = values_of(file, "blk.0.ffn_gate_exps.weight");
  const std::vector<float> up = values_of(file, "blk.0.ffn_up_exps.weight");
  const std::vector<float> down = values_of(file, "blk.0.ffn_down_exps.weight");
  ASSERT_EQ(gate.size(), kExperts * kFf * kWidth);
  for (uint64_t e = 0, at = 0; e < kExperts; ++e) {
    for (uint64_t f = 0; f < kFf; ++f) {
      for (uint64_t c = 0; c < kWidth; ++c, ++at) {
        ASSERT_EQ(gate[at], fused.value(e, 2 * f, c)) << e << ", " << f << ", " << c;
        ASSERT_EQ(up[at], fused.value(e, 2 * f + 1, c)) << e << ", " << f << ", " << c;
      }
    }
  }
  for (uint64_t e = 0, at = 0; e < kExperts; ++e) {
    for (uint64_t r = 0; r < kWidth; ++r) {
      for (uint64_t c = 0; c < kFf; ++c, ++at) ASSERT_EQ(down[at], back.value(e, r, c)) << e << ", " << r << ", " << c;
    }
  }
}

// In BF16 or F32 the experts lie the other way round, [experts, in, out], gate and up columns by turns.
TEST(FamilyValues, FloatExpertsOfGptOssAreTurned) {
  const std::string in = "model.layers.0.mlp.experts.";
  const gguf::File file = converted(gpt_oss_config(), tensors_of(gpt_oss_config()));
  const std::vector<float> fused = made_up(in + "gate_up_proj", kExperts * kWidth * 2 * kFf);
  const std::vector<float> back = made_up(in + "down_proj", kExperts * kFf * kWidth);
  const std::vector<float> biases = made_up(in + "gate_up_proj_bias", kExperts * 2 * kFf);
  std::vector<float> gate, up, down, gate_bias, up_bias;
  for (uint64_t e = 0; e < kExperts; ++e) {
    for (uint64_t f = 0; f < kFf; ++f) {
      for (uint64_t d = 0; d < kWidth; ++d) {
        gate.push_back(fused[(e * kWidth + d) * 2 * kFf + 2 * f]);
        up.push_back(fused[(e * kWidth + d) * 2 * kFf + 2 * f + 1]);
      }
      gate_bias.push_back(biases[e * 2 * kFf + 2 * f]);
      up_bias.push_back(biases[e * 2 * kFf + 2 * f + 1]);
    }
    for (uint64_t d = 0; d < kWidth; ++d) {
      for (uint64_t f = 0; f < kFf; ++f) down.push_back(back[(e * kFf + f) * kWidth + d]);
    }
  }
  EXPECT_EQ(values_of(file, "blk.0.ffn_gate_exps.weight"), gate);
  EXPECT_EQ(values_of(file, "blk.0.ffn_up_exps.weight"), up);
  EXPECT_EQ(values_of(file, "blk.0.ffn_down_exps.weight"), down);
  EXPECT_EQ(values_of(file, "blk.0.ffn_gate_exps.bias"), gate_bias);
  EXPECT_EQ(values_of(file, "blk.0.ffn_up_exps.bias"), up_bias);
  EXPECT_EQ(values_of(file, "blk.0.ffn_down_exps.bias"), made_up(in + "down_proj_bias", kExperts * kWidth));
}

// All norms of the block that predicts a token further are stored as w and used as 1 + w, as those of the trunk.
TEST(FamilyValues, DraftBlockOfQwen35FollowsTheTrunk) {
  constexpr uint64_t d = 32, head_dim = 32, n_heads = 2, ff = 48;
  const Json config = {
      {"architectures", {"Qwen3_5ForCausalLM"}},
      {"vocab_size", 40},
      {"hidden_size", d},
      {"intermediate_size", ff},
      {"num_hidden_layers", 2},
      {"num_attention_heads", n_heads},
      {"num_key_value_heads", 1},
      {"max_position_embeddings", 64},
      {"rms_norm_eps", 1e-6},
      {"rope_parameters", {{"rope_theta", 1e7}, {"partial_rotary_factor", 0.25}, {"mrope_section", {2, 1, 1}}}},
      {"head_dim", head_dim},
      {"linear_conv_kernel_dim", 4},
      {"linear_key_head_dim", 16},
      {"linear_value_head_dim", 16},
      {"linear_num_key_heads", 2},
      {"linear_num_value_heads", 2},
      {"full_attention_interval", 2}};
  std::map<std::string, Dims> shapes = Shapes(config).all("Qwen3_5ForCausalLM");
  const std::string in = "mtp.layers.0.";
  const std::map<std::string, std::pair<std::string, uint64_t>> norms = {
      {"nextn.enorm.weight", {"mtp.pre_fc_norm_embedding.weight", d}},
      {"nextn.hnorm.weight", {"mtp.pre_fc_norm_hidden.weight", d}},
      {"nextn.shared_head_norm.weight", {"mtp.norm.weight", d}},
      {"attn_norm.weight", {in + "input_layernorm.weight", d}},
      {"post_attention_norm.weight", {in + "post_attention_layernorm.weight", d}},
      {"attn_q_norm.weight", {in + "self_attn.q_norm.weight", head_dim}},
      {"attn_k_norm.weight", {in + "self_attn.k_norm.weight", head_dim}}};
  for (const auto& [to, from] : norms) shapes[from.first] = {from.second};
  shapes["mtp.fc.weight"] = {d, 2 * d};
  shapes[in + "self_attn.q_proj.weight"] = {2 * n_heads * head_dim, d};
  shapes[in + "self_attn.k_proj.weight"] = shapes[in + "self_attn.v_proj.weight"] = {head_dim, d};
  shapes[in + "self_attn.o_proj.weight"] = {d, n_heads * head_dim};
  shapes[in + "mlp.gate_proj.weight"] = shapes[in + "mlp.up_proj.weight"] = {ff, d};
  shapes[in + "mlp.down_proj.weight"] = {d, ff};

  const gguf::File file = converted(config, made_up_tensors(shapes));
  EXPECT_EQ(*file.metadata().get_int("qwen35.block_count", 0, 99), 3);
  EXPECT_EQ(*file.metadata().get_int("qwen35.nextn_predict_layers", 0, 99), 1);
  for (const auto& [to, from] : norms) {
    std::vector<float> expected = made_up(from.first, from.second);
    for (float& x : expected) x += 1.0f;
    EXPECT_EQ(values_of(file, "blk.2." + to), expected) << to;
  }
  EXPECT_EQ(values_of(file, "blk.2.nextn.eh_proj.weight"), made_up("mtp.fc.weight", 2 * d * d));
  models::FileSource source(file);
  const auto program = models::build_program(source, true);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_TRUE(program->has_drafts());
}

TEST(FamilyValues, FusedProjectionsOfQwen3NextAreSplit) {
  constexpr uint64_t d_model = 32, n_key = 2, n_value = 6, d_head = 4, ratio = n_value / n_key;
  const Json config = {{"architectures", {"Qwen3NextForCausalLM"}},
                       {"vocab_size", 40},
                       {"hidden_size", d_model},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},
                       {"max_position_embeddings", 64},
                       {"rms_norm_eps", 1e-6},
                       {"rope_theta", 1e7},
                       {"partial_rotary_factor", 0.25},
                       {"head_dim", 32},
                       {"linear_conv_kernel_dim", 4},
                       {"linear_key_head_dim", d_head},
                       {"linear_value_head_dim", d_head},
                       {"linear_num_key_heads", n_key},
                       {"linear_num_value_heads", n_value},
                       {"moe_intermediate_size", 8},
                       {"shared_expert_intermediate_size", 16},
                       {"num_experts_per_tok", 2},
                       {"num_experts", 3},
                       {"full_attention_interval", 2}};
  const std::string in = "model.layers.0.linear_attn.";
  const gguf::File file = converted(config, tensors_of(config));
  const uint64_t n_rows = 2 * n_key * d_head + 2 * n_value * d_head;
  const std::vector<float> fused = made_up(in + "in_proj_qkvz.weight", n_rows * d_model);

  // The rows of one key head after another: its query, its key, the values of its value heads, their gates.
  std::vector<float> q, k, v, z;
  auto row = fused.begin();
  const auto take = [&](uint64_t n, std::vector<float>& to) {
    to.insert(to.end(), row, row + static_cast<int64_t>(n * d_model));
    row += static_cast<int64_t>(n * d_model);
  };
  for (uint64_t h = 0; h < n_key; ++h) {
    take(d_head, q);
    take(d_head, k);
    take(ratio * d_head, v);
    take(ratio * d_head, z);
  }
  ASSERT_TRUE(row == fused.end());
  std::vector<float> qkv = q;
  qkv.insert(qkv.end(), k.begin(), k.end());
  qkv.insert(qkv.end(), v.begin(), v.end());
  EXPECT_EQ(values_of(file, "blk.0.attn_qkv.weight"), qkv);
  EXPECT_EQ(values_of(file, "blk.0.attn_gate.weight"), z);

  // The rest keeps its order; norms but the gated one are w + 1, and the decay is what the recurrence uses.
  EXPECT_EQ(values_of(file, "blk.0.ssm_ba.weight"), made_up(in + "in_proj_ba.weight", 2 * n_value * d_model));
  EXPECT_EQ(values_of(file, "blk.0.ssm_out.weight"), made_up(in + "out_proj.weight", d_model * n_value * d_head));
  EXPECT_EQ(values_of(file, "blk.0.ssm_conv1d.weight"),
            made_up(in + "conv1d.weight", (2 * n_key + n_value) * d_head * 4));
  EXPECT_EQ(values_of(file, "blk.0.ssm_norm.weight"), made_up(in + "norm.weight", d_head));
  std::vector<float> norm = made_up("model.layers.0.input_layernorm.weight", d_model);
  for (float& w : norm) w += 1;
  EXPECT_EQ(values_of(file, "blk.0.attn_norm.weight"), norm);
  const std::vector<float> a_log = made_up(in + "A_log", n_value), a = values_of(file, "blk.0.ssm_a");
  ASSERT_EQ(a.size(), n_value);
  for (uint64_t h = 0; h < n_value; ++h) EXPECT_FLOAT_EQ(a[h], static_cast<float>(-std::exp(double{a_log[h]})));
}

// The multipliers and all values are sums of few powers of two, so that any order of products gives the same float.
TEST(FamilyValues, MultipliersOfFalconH1AreInTheWeights) {
  constexpr uint64_t d_model = 32, ff = 48, inner = 64, heads = 4, groups = 2, state = 16, vocab = 40;
  const Json config = {{"architectures", {"FalconH1ForCausalLM"}},
                       {"vocab_size", vocab},
                       {"hidden_size", d_model},
                       {"intermediate_size", ff},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},
                       {"head_dim", 16},
                       {"rms_norm_eps", 1e-5},
                       {"max_position_embeddings", 64},
                       {"mamba_d_ssm", inner},
                       {"mamba_n_heads", heads},
                       {"mamba_n_groups", groups},
                       {"mamba_d_state", state},
                       {"mamba_d_conv", 4},
                       {"mamba_rms_norm", true},
                       {"mamba_norm_before_gate", false},
                       {"rope_theta", 1e6},
                       {"lm_head_multiplier", 0.75},
                       {"embedding_multiplier", 2.5},
                       {"mlp_multipliers", {0.375, 1.25}},
                       {"key_multiplier", 0.625},
                       {"attention_in_multiplier", 1.75},
                       {"attention_out_multiplier", 0.5},
                       {"ssm_in_multiplier", 1.5},
                       {"ssm_multipliers", {0.75, 1.25, 0.625, 3.0, 0.875}},
                       {"ssm_out_multiplier", 0.25}};
  const gguf::File file = converted(config, tensors_of(config));
  const auto expect_times = [&](const std::string& name, const std::string& source, uint64_t n, float factor) {
    std::vector<float> expected = made_up(source, n);
    for (float& v : expected) v *= factor;
    EXPECT_EQ(values_of(file, name), expected) << name;
  };
  const std::string at = "model.layers.0.";
  expect_times("token_embd.weight", "model.embed_tokens.weight", vocab * d_model, 2.5f);
  expect_times("output.weight", "lm_head.weight", vocab * d_model, 0.75f);
  expect_times("blk.0.attn_q.weight", at + "self_attn.q_proj.weight", 32 * d_model, 1.75f);
  expect_times("blk.0.attn_k.weight", at + "self_attn.k_proj.weight", 16 * d_model, 1.75f * 0.625f);
  expect_times("blk.0.attn_v.weight", at + "self_attn.v_proj.weight", 16 * d_model, 1.75f);
  expect_times("blk.0.attn_output.weight", at + "self_attn.o_proj.weight", 32 * d_model, 0.5f);
  expect_times("blk.0.ffn_gate.weight", at + "feed_forward.gate_proj.weight", ff * d_model, 0.375f);
  expect_times("blk.0.ffn_up.weight", at + "feed_forward.up_proj.weight", ff * d_model, 1.0f);
  expect_times("blk.0.ffn_down.weight", at + "feed_forward.down_proj.weight", ff * d_model, 1.25f);
  expect_times("blk.0.ssm_out.weight", at + "mamba.out_proj.weight", d_model * inner, 0.25f);
  expect_times("blk.0.ssm_conv1d.weight", at + "mamba.conv1d.weight", (inner + 2 * groups * state) * 4, 1.0f);

  // The projection's rows are z, x, B, C and the time steps.
  std::vector<float> projection =
      made_up(at + "mamba.in_proj.weight", (2 * inner + 2 * groups * state + heads) * d_model);
  auto row = projection.begin();
  const auto scale_rows = [&](uint64_t n, float factor) {
    for (uint64_t i = 0; i < n * d_model; ++i) *row++ *= factor * 1.5f;
  };
  scale_rows(inner, 0.75f);
  scale_rows(inner, 1.25f);
  scale_rows(groups * state, 0.625f);
  scale_rows(groups * state, 3.0f);
  scale_rows(heads, 0.875f);
  ASSERT_TRUE(row == projection.end());
  EXPECT_EQ(values_of(file, "blk.0.ssm_in.weight"), projection);
}

// XLM-RoBERTa's first positions belong to the padding; its head has names of its own.
TEST(FamilyValues, PositionsOfXlmRobertaBeginBehindThePadding) {
  constexpr uint64_t d = 32, n_positions = 20, n_before = 2;
  const Json config = {{"architectures", {"XLMRobertaForSequenceClassification"}},
                       {"model_type", "xlm-roberta"},
                       {"vocab_size", 40},
                       {"hidden_size", d},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 2},
                       {"intermediate_size", 48},
                       {"max_position_embeddings", n_positions},
                       {"pad_token_id", n_before - 1},
                       {"type_vocab_size", 1},
                       {"layer_norm_eps", 1e-5}};
  std::map<std::string, Dims> shapes = {{"classifier.dense.weight", {d, d}},
                                        {"classifier.dense.bias", {d}},
                                        {"classifier.out_proj.weight", {1, d}},
                                        {"classifier.out_proj.bias", {1}}};
  for (const auto& [name, shape] : Shapes(config).all("BertModel")) shapes["roberta." + name] = shape;
  const fs::path folder = fixture::scratch_folder("hf");
  write_checkpoint(folder, config, made_up_tensors(shapes));
  Json tokenizer = tiny_tokenizer();
  tokenizer["model"] =
      Json::parse(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -2.0]]})");
  tokenizer["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAAA=="}};
  write_text(folder / "tokenizer.json", tokenizer.dump());
  const auto report = run(folder, folder / "out.gguf");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->left_out.empty()) << report->left_out.front();
  const auto file = gguf::File::open((folder / "out.gguf").string());
  ASSERT_TRUE(file) << file.error().message;
  std::vector<float> positions = made_up("roberta.embeddings.position_embeddings.weight", n_positions * d);
  positions.erase(positions.begin(), positions.begin() + n_before * d);
  EXPECT_EQ(values_of(*file, "position_embd.weight"), positions);
  EXPECT_EQ(*file->metadata().get_int("bert.context_length", 0, 99), 18);
  EXPECT_EQ(*file->metadata().get_int("bert.pooling_type", 0, 99), 4);
  EXPECT_EQ(*file->metadata().get_int("tokenizer.ggml.token_type_count", 0, 9), 1);
  EXPECT_EQ(*file->metadata().get_ints("tokenizer.ggml.precompiled_charsmap", 0, 255), std::vector<int64_t>(4, 0));
  EXPECT_EQ(values_of(*file, "cls.weight"), made_up("classifier.dense.weight", d * d));
  EXPECT_EQ(values_of(*file, "cls.output.weight"), made_up("classifier.out_proj.weight", d));
}

// A reranker has one label; a classifier with several is refused by name.
TEST(FamilyValues, ClassifiersWithSeveralLabelsAreRefused) {
  const Json config = {{"architectures", {"BertForSequenceClassification"}},
                       {"vocab_size", 40},
                       {"hidden_size", 32},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 2},
                       {"intermediate_size", 48},
                       {"max_position_embeddings", 64},
                       {"type_vocab_size", 2},
                       {"layer_norm_eps", 1e-12}};
  std::map<std::string, Dims> shapes = {{"classifier.weight", {3, 32}}, {"classifier.bias", {3}}};
  for (const auto& [name, shape] : Shapes(config).all("BertModel")) shapes["bert." + name] = shape;
  shapes["bert.pooler.dense.weight"] = {32, 32};
  shapes["bert.pooler.dense.bias"] = {32};
  const fs::path folder = fixture::scratch_folder("hf");
  write_checkpoint(folder, config, made_up_tensors(shapes));
  const auto report = run(folder, folder / "out.gguf");
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("'classifier.weight': expected one label"), std::string::npos)
      << report.error().message;
}

}  // namespace
}  // namespace chimere::convert::test

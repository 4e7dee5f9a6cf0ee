// Every model class: its checkpoint becomes a file that the model's loader binds, and, where the reference files are at
// hand, one with the same metadata and tensors.
#include <cstdlib>

#include "convert/families.h"
#include "convert/shapes_for_test.h"
#include "gguf/value.h"
#include "models/registry.h"

namespace chimere::convert::test {
namespace {

// Config files of tiny models, without what no rule asks for.
const char* const kConfigs[] = {
    R"({"architectures": ["Qwen3_5MoeForConditionalGeneration"], "text_config": {"vocab_size": 40, "hidden_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-06, "tie_word_embeddings": true, "rope_parameters": {"rope_type": "default",
        "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1]}, "head_dim": 32,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_num_key_heads": 2,
        "linear_num_value_heads": 6, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 16,
        "num_experts_per_tok": 2, "num_experts": 3, "full_attention_interval": 2,
        "layer_types": ["linear_attention", "full_attention"]}})",
    R"({"architectures": ["Qwen3_5ForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.25,
        "mrope_section": [2, 1, 1]}, "head_dim": 32, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16,
        "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 2,
        "full_attention_interval": 2})",
    R"({"architectures": ["Qwen3NextForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-06, "rope_theta": 1e7, "partial_rotary_factor": 0.25, "head_dim": 32,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 16,
        "num_experts_per_tok": 2, "num_experts": 3, "full_attention_interval": 2})",
    R"({"architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-06, "rope_theta": 1e6, "head_dim": 32, "moe_intermediate_size": 8, "num_experts_per_tok": 2,
        "num_experts": 3, "norm_topk_prob": true, "mlp_only_layers": [], "decoder_sparse_step": 1})",
    R"({"architectures": ["Qwen3ForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-06, "rope_theta": 1e6, "head_dim": 32, "tie_word_embeddings": true})",
    R"({"architectures": ["Qwen2ForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-06, "rope_theta": 1e6, "tie_word_embeddings": true, "sliding_window": 16,
        "use_sliding_window": false})",
    R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})",
    R"({"architectures": ["NemotronHForCausalLM"], "vocab_size": 40, "hidden_size": 32, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 32, "ssm_state_size": 16, "mamba_num_heads": 4, "mamba_head_dim": 16,
        "n_groups": 2, "conv_kernel": 4, "n_routed_experts": 3, "moe_intermediate_size": 8,
        "moe_shared_expert_intermediate_size": 16, "num_experts_per_tok": 2, "routed_scaling_factor": 2.5,
        "moe_latent_size": 16, "layer_norm_epsilon": 1e-05, "hybrid_override_pattern": "ME*", "num_hidden_layers": 3})",
    R"({"architectures": ["NemotronHForCausalLM"], "vocab_size": 40, "hidden_size": 32, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 32, "ssm_state_size": 16, "mamba_num_heads": 4, "mamba_head_dim": 16,
        "n_groups": 2, "conv_kernel": 4, "intermediate_size": 48, "norm_eps": 1e-05, "hybrid_override_pattern": "M-*",
        "num_hidden_layers": 3})",
    R"({"architectures": ["Mamba2ForCausalLM"], "num_heads": 4, "head_dim": 16, "vocab_size": 40, "hidden_size": 32,
        "state_size": 16, "num_hidden_layers": 2, "layer_norm_epsilon": 1e-05, "conv_kernel": 4, "n_groups": 2})",
    R"({"architectures": ["MambaForCausalLM"], "vocab_size": 40, "hidden_size": 32, "state_size": 16,
        "num_hidden_layers": 2, "layer_norm_epsilon": 1e-05, "expand": 2, "conv_kernel": 4, "time_step_rank": 4,
        "tie_word_embeddings": true})",
    R"({"architectures": ["GraniteMoeHybridForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 8,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "rope_theta": 10000.0, "embedding_multiplier": 4.0,
        "logits_scaling": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.25, "num_local_experts": 3,
        "num_experts_per_tok": 2, "shared_intermediate_size": 16, "position_embedding_type": "nope",
        "layer_types": ["mamba", "attention"], "mamba_n_heads": 4, "mamba_n_groups": 1, "mamba_d_state": 16,
        "mamba_d_head": 16, "mamba_d_conv": 4, "mamba_expand": 2})",
    R"({"architectures": ["BambaForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-05,
        "max_position_embeddings": 64, "attn_layer_indices": [1], "rope_parameters": {"rope_type": "default",
        "rope_theta": 10000.0, "partial_rotary_factor": 0.5}, "mamba_n_heads": 4, "mamba_n_groups": 1,
        "mamba_d_state": 16, "mamba_d_head": 16, "mamba_d_conv": 4, "mamba_expand": 2})",
    R"({"architectures": ["FalconH1ForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-05,
        "max_position_embeddings": 64, "mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_n_groups": 2, "mamba_d_state": 16,
        "mamba_d_conv": 4, "mamba_rms_norm": true, "mamba_norm_before_gate": false, "rope_theta": 1e6,
        "lm_head_multiplier": 0.75, "embedding_multiplier": 2.5, "mlp_multipliers": [0.75, 1.25],
        "key_multiplier": 0.625, "attention_out_multiplier": 0.75, "attention_in_multiplier": 1.25, "ssm_in_multiplier": 1.5,
        "ssm_multipliers": [0.75, 1.25, 0.625, 1.5, 0.875], "ssm_out_multiplier": 0.75, "head_dim": 16})",
    R"({"architectures": ["JambaForCausalLM"], "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-06,
        "max_position_embeddings": 64, "num_experts_per_tok": 2, "num_experts": 3, "expert_layer_period": 2,
        "expert_layer_offset": 1, "attn_layer_period": 3, "attn_layer_offset": 1, "mamba_d_state": 16,
        "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 4})",
    R"({"architectures": ["GptOssForCausalLM"], "num_hidden_layers": 2, "num_local_experts": 3, "vocab_size": 40,
        "hidden_size": 32, "intermediate_size": 16, "head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1,
        "sliding_window": 32, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_parameters":
        {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 4096}, "num_experts_per_tok": 2})",
    R"({"architectures": ["BertModel"], "vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 48, "hidden_act": "gelu", "max_position_embeddings": 64,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12})",
};

std::string model_class(const Json& config) { return config["architectures"][0].get<std::string>(); }

class FamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(FamilyTest, ItsFileIsOneTheLoaderBinds) {
  const Json config = Json::parse(GetParam());
  const fs::path folder = fixture::scratch_folder("hf");
  write_checkpoint(folder, config, made_up_tensors(Shapes(config).all(model_class(config)), true));
  for (const DType type : {DType::F32, DType::Q8_0}) {
    const fs::path out = folder / "out.gguf";
    const auto report = run(folder, out, type);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->left_out.empty()) << report->left_out.front();
    const auto file = gguf::File::open(out.string());
    ASSERT_TRUE(file) << file.error().message;
    models::FileSource source(*file);
    const auto program = models::build_program(source);
    EXPECT_TRUE(program) << program.error().message;
  }
}

TEST_P(FamilyTest, AMissingTensorIsNamed) {
  const Json config = Json::parse(GetParam());
  const fs::path folder = fixture::scratch_folder("hf");
  const std::map<std::string, Dims> shapes = Shapes(config).all(model_class(config));
  // The last by name: somewhere deep in a layer, or the head.
  for (const auto& missing : {std::prev(shapes.end())->first, std::next(shapes.begin(), shapes.size() / 2)->first}) {
    // These may be absent: models exist with and without them.
    if (missing.find("bias") != std::string::npos || missing.find("mamba.norm") != std::string::npos) continue;
    Tensors tensors = made_up_tensors(shapes);
    tensors.erase(missing);
    write_checkpoint(folder, config, tensors);
    const auto report = run(folder, folder / "out.gguf");
    ASSERT_FALSE(report) << missing;
    EXPECT_NE(report.error().message.find(missing), std::string::npos) << missing << ": " << report.error().message;
    EXPECT_FALSE(fs::exists(folder / "out.gguf"));
  }
}

std::string config_name(const testing::TestParamInfo<const char*>& info) {
  return model_class(Json::parse(info.param)) + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Classes, FamilyTest, testing::ValuesIn(kConfigs), config_name);

// Reference files made by another converter from the same configs: their metadata, names, shapes and types are ours.
TEST(ReferenceFiles, MetadataAndTensorsAreThoseOfTheReferenceConverter) {
  const char* shared = std::getenv("CHIMERE_SHARED");
  if (!shared) GTEST_SKIP() << "CHIMERE_SHARED names no folder";
  int n_compared = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(shared) / "fixtures")) {
    const std::string name = entry.path().filename().string();
    if (!fs::exists(entry.path() / "model.gguf") || name.find("-Q-") != std::string::npos) continue;
    SCOPED_TRACE(name);
    const Json config = Json::parse(read_bytes(entry.path() / "fixture.json"))["config"];
    const auto reference = gguf::File::open((entry.path() / "model.gguf").string());
    ASSERT_TRUE(reference) << reference.error().message;
    const fs::path folder = fixture::scratch_folder(name);
    write_checkpoint(folder, config, made_up_tensors(Shapes(config).all(model_class(config)), true));
    const auto file_type = reference->metadata().get_int("general.file_type", 0, 64);
    ASSERT_TRUE(file_type);
    const DType type = *file_type == 0 ? DType::F32 : *file_type == 1 ? DType::F16 : DType::BF16;
    const auto report = run(folder, folder / "out.gguf", type);
    ASSERT_TRUE(report) << report.error().message;
    const auto ours = gguf::File::open((folder / "out.gguf").string());
    ASSERT_TRUE(ours) << ours.error().message;
    for (const auto& [key, value] : reference->metadata().entries()) {
      if (key.rfind("tokenizer.", 0) == 0 || key == "general.name" || key == "general.size_label") continue;
      const gguf::Value* found = ours->metadata().find(key);
      if (!found && key == "general.quantization_version") continue;
      ASSERT_NE(found, nullptr) << key;
      EXPECT_TRUE(*found == value) << key << ": " << gguf::describe(*found) << ", expected " << gguf::describe(value);
    }
    EXPECT_EQ(ours->tensors().size(), reference->tensors().size());
    for (const TensorView& expected : reference->tensors()) {
      const TensorView* found = ours->find(expected.name);
      ASSERT_NE(found, nullptr) << expected.name;
      EXPECT_EQ(found->ne, expected.ne) << expected.name;
      EXPECT_EQ(found->type, expected.type) << expected.name;
    }
    ++n_compared;
  }
  EXPECT_GE(n_compared, 20);
}

// The checkpoint `hf` of a fixture becomes its model.gguf: every byte of every tensor, and all metadata that a loader
// reads.
void expect_reference_file(const fs::path& hf, const fs::path& model, const fs::path& out) {
  const auto reference = gguf::File::open(model.string());
  ASSERT_TRUE(reference) << reference.error().message;
  const auto file_type = reference->metadata().get_int("general.file_type", 0, 64);
  ASSERT_TRUE(file_type) << file_type.error().message;
  const auto report = run(hf, out, *file_type == 0 ? DType::F32 : *file_type == 1 ? DType::F16 : DType::BF16);
  ASSERT_TRUE(report) << report.error().message;
  const auto ours = gguf::File::open(out.string());
  ASSERT_TRUE(ours) << ours.error().message;
  for (const auto& [key, value] : reference->metadata().entries()) {
    // Names, and a key that no loader of ours reads.
    if (key == "general.name" || key == "general.size_label" || key == "tokenizer.ggml.add_sep_token") continue;
    const gguf::Value* found = ours->metadata().find(key);
    ASSERT_NE(found, nullptr) << key;
    EXPECT_TRUE(*found == value) << key << ": " << gguf::describe(*found) << ", expected " << gguf::describe(value);
  }
  EXPECT_EQ(ours->tensors().size(), reference->tensors().size());
  for (const TensorView& expected : reference->tensors()) {
    const TensorView* found = ours->find(expected.name);
    ASSERT_NE(found, nullptr) << expected.name;
    ASSERT_EQ(found->type, expected.type) << expected.name;
    ASSERT_EQ(found->ne, expected.ne) << expected.name;
    EXPECT_EQ(std::memcmp(found->data, expected.data, expected.size_bytes()), 0) << expected.name;
  }
}

// Fixtures of the repository that came with their checkpoint.
TEST(ReferenceFiles, KeptCheckpointsGiveTheKeptFile) {
  for (const auto& entry : fs::directory_iterator(fs::path(CHIMERE_TESTS_DIR) / "golden" / "models")) {
    if (!fs::exists(entry.path() / "hf")) continue;
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    expect_reference_file(entry.path() / "hf", entry.path() / "model.gguf", fixture::scratch_folder(name) / "out.gguf");
  }
}

// The two models of the larger set that are there in both forms.
TEST(ReferenceFiles, CheckpointsGiveTheReferenceFile) {
  const char* shared = std::getenv("CHIMERE_SHARED");
  if (!shared) GTEST_SKIP() << "CHIMERE_SHARED names no folder";
  for (const char* name : {"qwen3_5_moe-A", "nemotron_h-moe-A"}) {
    SCOPED_TRACE(name);
    const fs::path fixture = fs::path(shared) / "fixtures" / name;
    const fs::path folder = fixture::scratch_folder(name);
    for (const auto& entry : fs::directory_iterator(fixture / "hf")) {
      if (entry.path().extension() == ".json") fs::copy_file(entry.path(), folder / entry.path().filename());
    }
    const std::string unpack = "xz -dc '" + (fixture / "hf" / "model.safetensors.xz").string() + "' > '" +
                               (folder / "model.safetensors").string() + "'";
    if (std::system(unpack.c_str()) != 0) GTEST_SKIP() << "xz is not installed";
    expect_reference_file(folder, fixture / "model.gguf", folder / "out.gguf");
  }
}

}  // namespace
}  // namespace chimere::convert::test

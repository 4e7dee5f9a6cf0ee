#include "models/synthetic.h"

#include <bit>
#include <cmath>
#include <map>

#include "base/hash.h"
#include "tensor/random_blocks.h"

namespace chimere::models {
namespace {

struct Shape35 {
  const char* name;
  int hidden, layers, vocab, heads, kv_heads, head_dim, key_heads, value_heads, state, experts, used, ff;
};

constexpr Shape35 kQwen35[] = {
    {"qwen3.5-35b-a3b", 2048, 40, 248320, 16, 2, 256, 16, 32, 128, 256, 8, 512},
    {"qwen3.5-tiny", 512, 8, 32000, 4, 2, 128, 4, 8, 128, 32, 4, 256},
};

// Layers as their pattern: M Mamba-2, E experts, * attention.
struct ShapeNemotron {
  const char* name;
  const char* pattern;
  int hidden, vocab, heads, kv_heads, head_dim, mamba_heads, mamba_head_dim, groups, state, experts, used, ff,
      shared_ff;
};

constexpr ShapeNemotron kNemotron[] = {
    {"nemotron-3-nano-30b-a3b", "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", 2688, 131072, 32, 2, 128, 64,
     64, 8, 128, 128, 6, 1856, 3712},
    {"nemotron-tiny", "MEM*EMEM*E", 512, 32000, 4, 2, 128, 16, 64, 4, 128, 16, 4, 512, 512},
};

// Plain transformers.
struct ShapeDense {
  const char* name;
  int hidden, layers, vocab, heads, kv_heads, head_dim, ff, context;
};

constexpr ShapeDense kDense[] = {
    {"llama-8b", 4096, 32, 128256, 32, 8, 128, 14336, 131072},
    {"llama-tiny", 512, 8, 32000, 8, 2, 64, 1536, 8192},
};

// Types of attention and SSM projections, shared expert, routed experts, embedding, head, and gates.
struct Mix {
  const char* name;
  DType attention, shared, experts, embedding, head, gates;
};

constexpr Mix kMixes[] = {
    {"iq3_s", DType::Q5_K, DType::Q5_K, DType::IQ3_S, DType::Q4_K, DType::Q6_K, DType::Q8_0},
    {"q4_k", DType::Q4_K, DType::Q4_K, DType::Q4_K, DType::Q4_K, DType::Q6_K, DType::Q8_0},
    {"q4_0", DType::Q4_0, DType::Q4_0, DType::Q4_0, DType::Q4_0, DType::Q6_K, DType::Q8_0},
    {"q8_0", DType::Q8_0, DType::Q8_0, DType::Q8_0, DType::Q8_0, DType::Q8_0, DType::Q8_0},
    {"f16", DType::F16, DType::F16, DType::F16, DType::F16, DType::F16, DType::F16},
};

constexpr float kStddev = 0.02f;
constexpr uint64_t kSlackBlocks = 1 << 14;  // room for tensors to start at different places of a pool

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

class SyntheticSource final : public WeightSource {
 public:
  template <class AnyShape>
  SyntheticSource(const AnyShape& shape, const Mix& mix) : mix_(mix) {
    write_metadata(shape);
  }

  const gguf::Metadata& metadata() const override { return metadata_; }
  void taken(const TensorView&) override {}

  const TensorView* find(std::string_view name, const Shape& wanted, bool required) override {
    // A draft block is looked for by its first matrix, before anybody knows the shape.
    if (!required && name.ends_with(".nextn.eh_proj.weight")) return &block_is_there_;
    // Of the other optional tensors two are present: an output head of its own, and biases of convolutions.
    if (!required && name != "output.weight" && !contains(name, "ssm_conv1d.bias")) return nullptr;
    auto [it, is_new] = tensors_.try_emplace(std::string(name));
    if (is_new) {
      it->second.name = it->first;
      it->second.ne = wanted;
      fill(it->second);
    }
    return &it->second;
  }

 private:
  void write_metadata(const Shape35& s);
  void write_metadata(const ShapeNemotron& s);
  void write_metadata(const ShapeDense& s);
  void write_common(const std::string& arch, const char* name, std::initializer_list<std::pair<const char*, int>> ints);
  void fill(TensorView& tensor);
  DType type_of(std::string_view name, uint64_t row) const;

  const Mix mix_;
  gguf::Metadata metadata_;
  std::map<std::string, TensorView> tensors_;
  const TensorView block_is_there_{};
  std::map<std::pair<DType, uint64_t>, std::vector<std::byte>> pools_;  // by type and capacity in bytes
  std::map<std::string, std::vector<float>> vectors_;
};

void SyntheticSource::write_common(const std::string& arch, const char* name,
                                   std::initializer_list<std::pair<const char*, int>> ints) {
  metadata_.set_string("general.architecture", arch);
  metadata_.set_string("general.name", std::string("synthetic ") + name);
  metadata_.set_string("tokenizer.ggml.model", "no_vocab");
  for (const auto& [key, value] : ints) metadata_.set_int(arch + "." + key, gguf::ValueType::u32, value);
}

void SyntheticSource::write_metadata(const Shape35& s) {
  const std::string a = "qwen35moe";
  write_common(a, s.name,
               {{"block_count", s.layers + 1},
                {"nextn_predict_layers", 1},
                {"context_length", 262144},
                {"embedding_length", s.hidden},
                {"attention.head_count", s.heads},
                {"attention.head_count_kv", s.kv_heads},
                {"attention.key_length", s.head_dim},
                {"attention.value_length", s.head_dim},
                {"rope.dimension_count", s.head_dim / 4},
                {"expert_count", s.experts},
                {"expert_used_count", s.used},
                {"expert_feed_forward_length", s.ff},
                {"expert_shared_feed_forward_length", s.ff},
                {"ssm.conv_kernel", 4},
                {"ssm.state_size", s.state},
                {"ssm.group_count", s.key_heads},
                {"ssm.time_step_rank", s.value_heads},
                {"ssm.inner_size", s.value_heads * s.state},
                {"full_attention_interval", 4},
                {"vocab_size", s.vocab}});
  metadata_.set_float(a + ".rope.freq_base", 1e7);
  metadata_.set_float(a + ".attention.layer_norm_rms_epsilon", 1e-6);
}

void SyntheticSource::write_metadata(const ShapeNemotron& s) {
  const std::string a = "nemotron_h_moe", pattern = s.pattern;
  write_common(a, s.name,
               {{"block_count", static_cast<int>(pattern.size())},
                {"context_length", 1 << 20},
                {"embedding_length", s.hidden},
                {"attention.head_count", s.heads},
                {"attention.key_length", s.head_dim},
                {"attention.value_length", s.head_dim},
                {"expert_count", s.experts},
                {"expert_used_count", s.used},
                {"expert_feed_forward_length", s.ff},
                {"expert_shared_feed_forward_length", s.shared_ff},
                {"ssm.conv_kernel", 4},
                {"ssm.state_size", s.state},
                {"ssm.group_count", s.groups},
                {"ssm.time_step_rank", s.mamba_heads},
                {"ssm.inner_size", s.mamba_heads * s.mamba_head_dim},
                {"vocab_size", s.vocab}});
  std::vector<int64_t> kv_heads, widths;
  for (char kind : pattern) {
    kv_heads.push_back(kind == '*' ? s.kv_heads : 0);
    widths.push_back(kind == 'E' ? s.ff : 0);
  }
  metadata_.set(a + ".attention.head_count_kv", {gguf::ValueType::i32, true, kv_heads});
  metadata_.set(a + ".feed_forward_length", {gguf::ValueType::i32, true, widths});
  metadata_.set_float(a + ".expert_weights_scale", 2.5);
  metadata_.set_float(a + ".attention.layer_norm_rms_epsilon", 1e-5);
}

void SyntheticSource::write_metadata(const ShapeDense& s) {
  const std::string a = "llama";
  write_common(a, s.name,
               {{"block_count", s.layers},
                {"context_length", s.context},
                {"embedding_length", s.hidden},
                {"feed_forward_length", s.ff},
                {"attention.head_count", s.heads},
                {"attention.head_count_kv", s.kv_heads},
                {"attention.key_length", s.head_dim},
                {"attention.value_length", s.head_dim},
                {"rope.dimension_count", s.head_dim},
                {"vocab_size", s.vocab}});
  metadata_.set_float(a + ".rope.freq_base", 5e5);
  metadata_.set_float(a + ".attention.layer_norm_rms_epsilon", 1e-5);
}

DType SyntheticSource::type_of(std::string_view name, uint64_t row) const {
  DType type = mix_.attention;
  if (name == "token_embd.weight") type = mix_.embedding;
  if (name == "output.weight") type = mix_.head;
  if (contains(name, "_exps.")) type = mix_.experts;
  if (contains(name, "_shexp.")) type = mix_.shared;
  if (contains(name, "ssm_alpha") || contains(name, "ssm_beta")) type = mix_.gates;
  if (contains(name, "ffn_gate_inp.")) type = DType::F32;
  return row % info(type).block_elems == 0 ? type : DType::F16;
}

void SyntheticSource::fill(TensorView& t) {
  const uint64_t seed = hash64(t.name);
  const bool is_vector = t.rows() == 1;
  if (is_vector) {
    // Norms are ones; decay rates, time steps and convolutions vary as in trained models.
    std::vector<float>& v = vectors_[std::string(t.name)];
    v.assign(t.ne[0], 1.0f);
    std::vector<float> noise(t.ne[0]);
    random_blocks(DType::F32, reinterpret_cast<std::byte*>(noise.data()), static_cast<int64_t>(t.ne[0]), seed, 1.0f);
    for (uint64_t i = 0; i < t.ne[0]; ++i) {
      if (contains(t.name, "ssm_conv1d")) v[i] = 0.3f * noise[i];
      if (contains(t.name, "ssm_dt")) v[i] = 0.5f * noise[i] - 3.0f;
      if (contains(t.name, "ssm_a")) v[i] = -std::exp(1.35f + 0.8f * std::tanh(noise[i]));
      if (contains(t.name, "ffn_gate_inp_shexp")) v[i] = kStddev * noise[i];
      if (contains(t.name, "exp_probs_b")) v[i] = 0.1f * noise[i];
    }
    t.type = DType::F32;
    t.data = reinterpret_cast<const std::byte*>(v.data());
    return;
  }
  t.type = type_of(t.name, t.ne[0]);
  const uint64_t block = info(t.type).block_bytes, capacity = std::bit_ceil(t.size_bytes()) + kSlackBlocks * block;
  std::vector<std::byte>& pool = pools_[{t.type, capacity}];
  if (pool.empty()) {
    pool.resize(capacity);
    random_blocks(t.type, pool.data(), static_cast<int64_t>(capacity / block), capacity, kStddev);
  }
  t.data = pool.data() + seed % kSlackBlocks * block;
}

}  // namespace

std::string synthetic_models() {
  std::string names;
  for (const auto& s : kQwen35) names += (names.empty() ? "" : ", ") + std::string(s.name);
  for (const auto& s : kNemotron) names += ", " + std::string(s.name);
  for (const auto& s : kDense) names += ", " + std::string(s.name);
  return names;
}

std::string synthetic_mixes() {
  std::string names;
  for (const Mix& m : kMixes) names += (names.empty() ? "" : ", ") + std::string(m.name);
  return names;
}

Result<std::unique_ptr<WeightSource>> synthetic_source(const std::string& spec) {
  const size_t colon = spec.find(':');
  const std::string model = spec.substr(0, colon);
  // Rows of 2688 elements are not a multiple of 256: a mix of such formats would leave Nemotron's matrices as halves.
  const char* usual = model.starts_with("nemotron") ? "q4_0" : model.starts_with("llama") ? "q4_k" : "iq3_s";
  const std::string mix_name = colon == std::string::npos ? usual : spec.substr(colon + 1);
  const Mix* mix = nullptr;
  for (const Mix& m : kMixes) {
    if (mix_name == m.name) mix = &m;
  }
  if (!mix) return Error{Code::invalid_argument, "mix '" + mix_name + "': expected one of " + synthetic_mixes()};
  std::unique_ptr<WeightSource> made;
  const auto look_in = [&](const auto& shapes) {
    for (const auto& s : shapes) {
      if (model == s.name) made = std::make_unique<SyntheticSource>(s, *mix);
    }
  };
  look_in(kQwen35);
  look_in(kNemotron);
  look_in(kDense);
  if (made) return Result<std::unique_ptr<WeightSource>>{std::move(made)};
  return Error{Code::invalid_argument, "synthetic model '" + model + "': expected one of " + synthetic_models()};
}

}  // namespace chimere::models

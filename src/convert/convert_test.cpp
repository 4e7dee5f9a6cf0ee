// Values against formulas written out here, damaged checkpoints, and runs that are stopped and continued.
#include <cmath>
#include <optional>
#include <set>

#include "convert/checkpoint_for_test.h"

namespace chimere::convert::test {
namespace {

constexpr uint64_t kLlamaWidth = 8, kHeads = 2, kHeadDim = 4, kVocab = 6, kLlamaFf = 12;

Json llama_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", kVocab},
          {"hidden_size", kLlamaWidth},
          {"intermediate_size", kLlamaFf},
          {"num_hidden_layers", 1},
          {"num_attention_heads", kHeads},
          {"num_key_value_heads", 1},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0}};
}

std::map<std::string, Dims> llama_shapes() {
  const std::string at = "model.layers.0.";
  return {{"model.embed_tokens.weight", {kVocab, kLlamaWidth}},
          {"lm_head.weight", {kVocab, kLlamaWidth}},
          {"model.norm.weight", {kLlamaWidth}},
          {at + "input_layernorm.weight", {kLlamaWidth}},
          {at + "post_attention_layernorm.weight", {kLlamaWidth}},
          {at + "self_attn.q_proj.weight", {kLlamaWidth, kLlamaWidth}},
          {at + "self_attn.k_proj.weight", {kHeadDim, kLlamaWidth}},
          {at + "self_attn.v_proj.weight", {kHeadDim, kLlamaWidth}},
          {at + "self_attn.o_proj.weight", {kLlamaWidth, kLlamaWidth}},
          {at + "mlp.gate_proj.weight", {kLlamaFf, kLlamaWidth}},
          {at + "mlp.up_proj.weight", {kLlamaFf, kLlamaWidth}},
          {at + "mlp.down_proj.weight", {kLlamaWidth, kLlamaFf}}};
}

std::string f16_bytes(const std::vector<float>& values) {
  std::string out;
  for (const float v : values) {
    const uint16_t bits = f32_to_f16(v);
    out.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  return out;
}

fs::path llama_folder() {
  const fs::path folder = fixture::scratch_folder("hf");
  write_checkpoint(folder, llama_config(), made_up_tensors(llama_shapes()));
  return folder;
}

gguf::File converted(const fs::path& folder, DType type = DType::F32) {
  const auto report = run(folder, folder / "out.gguf", type);
  EXPECT_TRUE(report) << report.error().message;
  auto file = gguf::File::open((folder / "out.gguf").string());
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

void expect_refused(const fs::path& folder, const std::vector<std::string>& words) {
  const auto report = run(folder, folder / "out.gguf");
  ASSERT_FALSE(report);
  for (const std::string& word : words) {
    EXPECT_NE(report.error().message.find(word), std::string::npos) << word << ": " << report.error().message;
  }
  EXPECT_FALSE(fs::exists(folder / "out.gguf"));
}

TEST(Convert, RowsOfQueriesAndKeysBecomePairs) {
  const gguf::File file = converted(llama_folder());
  const std::string source = "model.layers.0.self_attn.q_proj.weight";
  const std::vector<float> before = made_up(source, kLlamaWidth * kLlamaWidth),
                           after = values_of(file, "blk.0.attn_q.weight");
  const uint64_t order[] = {0, 2, 1, 3, 4, 6, 5, 7};  // of each head of 4 rows: first half and second half by turns
  for (uint64_t r = 0; r < kLlamaWidth; ++r) {
    for (uint64_t c = 0; c < kLlamaWidth; ++c)
      EXPECT_EQ(after[r * kLlamaWidth + c], before[order[r] * kLlamaWidth + c]);
  }
  EXPECT_EQ(values_of(file, "blk.0.attn_v.weight"),
            made_up("model.layers.0.self_attn.v_proj.weight", kHeadDim * kLlamaWidth));
  EXPECT_EQ(*file.metadata().get_int("llama.attention.head_count", 0, 99), 2);
  EXPECT_EQ(*file.metadata().get_string("tokenizer.chat_template"), "{{ messages }}");
}

TEST(Convert, TypesOfMatricesAndWhatStaysFloat) {
  const fs::path folder = llama_folder();
  for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
    const gguf::File file = converted(folder, type);
    EXPECT_EQ(file.find("blk.0.ffn_down.weight")->type, type);
    EXPECT_EQ(file.find("blk.0.attn_norm.weight")->type, DType::F32);
    EXPECT_EQ(values_of(file, "blk.0.ffn_down.weight"),
              made_up("model.layers.0.mlp.down_proj.weight", kLlamaWidth * kLlamaFf));
  }
  // Rows of 8 and 12 values do not fill blocks of 32.
  EXPECT_EQ(converted(folder, DType::Q8_0).find("blk.0.ffn_down.weight")->type, DType::F16);
}

TEST(Convert, WithoutATypeTheSmallestThatHoldsTheWeightsIsTaken) {
  const auto type_of = [](const Tensors& tensors) {
    const fs::path folder = fixture::scratch_folder("hf");
    write_checkpoint(folder, llama_config(), tensors);
    EXPECT_TRUE(convert({folder.string(), (folder / "out.gguf").string(), std::nullopt, ""}, keep_going));
    const auto file = gguf::File::open((folder / "out.gguf").string());
    EXPECT_TRUE(file) << file.error().message;
    return file ? file->find("blk.0.attn_q.weight")->type : DType::I8;
  };
  Tensors tensors = made_up_tensors(llama_shapes(), true);
  EXPECT_EQ(type_of(tensors), DType::BF16);
  // A norm is F32 in the file, whatever it was; one wider matrix decides for all.
  const std::string norm = "model.norm.weight", down = "model.layers.0.mlp.down_proj.weight";
  tensors[norm] = {"F32", {kLlamaWidth}, f32_bytes(made_up(norm, kLlamaWidth))};
  EXPECT_EQ(type_of(tensors), DType::BF16);
  const std::vector<float> values = made_up(down, kLlamaWidth * kLlamaFf);
  tensors[down] = {"F32", {kLlamaWidth, kLlamaFf}, f32_bytes(values)};
  EXPECT_EQ(type_of(tensors), DType::F32);
  tensors[down] = {"F16", {kLlamaWidth, kLlamaFf}, f16_bytes(values)};
  EXPECT_EQ(type_of(tensors), DType::F32);  // neither half holds the other
  for (const auto& [name, shape] : llama_shapes()) {
    tensors[name] = {"F16", shape, f16_bytes(made_up(name, count(shape)))};
  }
  EXPECT_EQ(type_of(tensors), DType::F16);
}

TEST(Convert, AFileNamedByItsContentIsMadeOnce) {
  const fs::path folder = llama_folder();
  ConvertOptions options{folder.string(), (folder / "out").string(), DType::F32, ""};
  options.named_by_content = true;
  const auto first = convert(options, keep_going);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(fs::exists(first->file)) << first->file;
  const auto second = convert(options, [](uint64_t, uint64_t) { return false; });  // nothing left to do
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->file, first->file);
  // Another type, tokenizer or other weights are another file.
  options.type = DType::BF16;
  const auto other_type = convert(options, keep_going);
  options.type = DType::F32;
  write_text(folder / "tokenizer_config.json", R"({"eos_token": "<|im_end|>", "chat_template": "{{ tools }}"})");
  const auto other_template = convert(options, keep_going);
  Tensors tensors = made_up_tensors(llama_shapes());
  for (auto& [name, saved] : tensors) saved.bytes = f32_bytes(made_up(name + " tuned", count(saved.shape)));
  write_shard(folder / "model.safetensors", tensors);
  const auto other_weights = convert(options, keep_going);
  ASSERT_TRUE(other_type && other_template && other_weights);
  const std::set<std::string> files = {first->file, other_type->file, other_template->file, other_weights->file};
  EXPECT_EQ(files.size(), 4u);
}

TEST(Convert, AnotherShardingGivesTheSameFile) {
  const fs::path folder = llama_folder();
  ASSERT_TRUE(run(folder, folder / "one.gguf", DType::BF16));
  const Tensors all = made_up_tensors(llama_shapes());
  Tensors parts[2];
  Json map;
  int n = 0;
  for (const auto& [name, saved] : all) {
    map[name] = n % 2 ? "model-00002-of-00002.safetensors" : "model-00001-of-00002.safetensors";
    parts[n++ % 2][name] = saved;
  }
  fs::remove(folder / "model.safetensors");
  write_shard(folder / "model-00001-of-00002.safetensors", parts[0]);
  write_shard(folder / "model-00002-of-00002.safetensors", parts[1]);
  write_text(folder / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
  ASSERT_TRUE(run(folder, folder / "two.gguf", DType::BF16));
  EXPECT_EQ(read_bytes(folder / "one.gguf"), read_bytes(folder / "two.gguf"));

  // A shard that is missing, one that is cut short, one that lost a tensor: each message names it.
  const std::string second = read_bytes(folder / "model-00002-of-00002.safetensors");
  fs::remove(folder / "model-00002-of-00002.safetensors");
  expect_refused(folder, {"model-00002-of-00002.safetensors", "missing"});
  write_text(folder / "model-00002-of-00002.safetensors", second.substr(0, second.size() - 5));
  expect_refused(folder, {"model-00002-of-00002.safetensors", "damaged or cut short"});
  const std::string lost = parts[1].begin()->first;
  parts[1].erase(lost);
  write_shard(folder / "model-00002-of-00002.safetensors", parts[1]);
  expect_refused(folder, {"model-00002-of-00002.safetensors", lost});
}

TEST(Convert, DamagedValuesAndWrongShapesAreRefused) {
  const fs::path folder = fixture::scratch_folder("hf");
  const std::string up = "model.layers.0.mlp.up_proj.weight";
  Tensors tensors = made_up_tensors(llama_shapes());
  std::vector<float> values = made_up(up, kLlamaFf * kLlamaWidth);
  values[5 * kLlamaWidth + 3] = NAN;
  tensors[up].bytes = f32_bytes(values);
  write_checkpoint(folder, llama_config(), tensors);
  expect_refused(folder, {up, "row 5", "not finite"});

  values[5 * kLlamaWidth + 3] = 1e6f;
  tensors[up].bytes = f32_bytes(values);
  write_checkpoint(folder, llama_config(), tensors);
  const auto report = run(folder, folder / "half.gguf", DType::F16);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("too large for F16"), std::string::npos) << report.error().message;

  tensors = made_up_tensors(llama_shapes());
  tensors[up].shape = {kLlamaWidth, kLlamaFf};
  write_checkpoint(folder, llama_config(), tensors);
  expect_refused(folder, {"blk.0.ffn_up.weight"});

  Json config = llama_config();
  config["architectures"] = {"PaintingForCausalLM"};
  write_checkpoint(folder, config, tensors);
  expect_refused(folder, {"PaintingForCausalLM", "LlamaForCausalLM"});
  config = llama_config();
  config.erase("hidden_size");
  write_checkpoint(folder, config, tensors);
  expect_refused(folder, {"config.json", "hidden_size"});
}

// The test ends: that is what it shows.
TEST(Convert, CountsBeyondAnyModelAreRefusedAtOnce) {
  const fs::path folder = fixture::scratch_folder("hf");
  for (const auto& [key, value] : {std::pair("num_hidden_layers", 1'000'000'000), std::pair("head_dim", 1 << 30)}) {
    Json config = llama_config();
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 64}};
    config[key] = value;
    write_checkpoint(folder, config, made_up_tensors(llama_shapes()));
    expect_refused(folder, {"expected at most", std::to_string(value)});
  }
  Json config = llama_config();
  config["architectures"] = {"MixtralForCausalLM"};
  config["num_local_experts"] = 1'000'000'000;
  config["num_experts_per_tok"] = 2;
  auto shapes = llama_shapes();
  shapes["model.layers.0.mlp.gate.weight"] = {4, kLlamaWidth};
  write_checkpoint(folder, config, made_up_tensors(shapes));
  expect_refused(folder, {"expected at most", "experts", "1000000000"});
}

TEST(Convert, TiedWeightsStoredUnderTheOtherName) {
  const fs::path folder = llama_folder();
  Json config = llama_config();
  config["tie_word_embeddings"] = true;
  Tensors tensors = made_up_tensors(llama_shapes());
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  write_checkpoint(folder, config, tensors);
  ASSERT_TRUE(run(folder, folder / "usual.gguf"));

  tensors.erase("model.embed_tokens.weight");
  write_shard(folder / "model.safetensors", tensors);
  expect_refused(folder, {"model.embed_tokens.weight", "missing"});
  write_shard(folder / "model.safetensors", tensors, {{"model.embed_tokens.weight", "no.such.tensor"}});
  expect_refused(folder, {"model.embed_tokens.weight", "missing"});
  write_shard(folder / "model.safetensors", tensors, {{"model.embed_tokens.weight", "lm_head.weight"}});
  const auto report = run(folder, folder / "alias.gguf");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->left_out.empty());
  EXPECT_EQ(read_bytes(folder / "usual.gguf"), read_bytes(folder / "alias.gguf"));
}

TEST(Convert, FilesThatGitLfsDidNotBringAreNamed) {
  const fs::path folder = llama_folder();
  const std::string pointer =
      "version https://git-lfs.example/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1\nsize "
      "1048576\n";
  write_text(folder / "model.safetensors", pointer);
  expect_refused(folder, {"model.safetensors", "Git LFS pointer"});
  write_checkpoint(folder, llama_config(), made_up_tensors(llama_shapes()));
  write_text(folder / "tokenizer.json", pointer);
  expect_refused(folder, {"tokenizer.json", "Git LFS pointer"});
}

// A run that ends at any point and is started again writes the bytes of one that was left alone.
TEST(Convert, AStoppedRunGoesOn) {
  const fs::path folder = llama_folder();
  ASSERT_TRUE(run(folder, folder / "whole.gguf"));
  const std::string whole = read_bytes(folder / "whole.gguf");
  const fs::path out = folder / "out.gguf";
  uint64_t n_stops = 0, last_start = 0;
  for (uint64_t limit = 1;; limit += 97) {
    uint64_t first = 0;
    const auto report = convert({folder.string(), out.string(), DType::F32, ""}, [&](uint64_t done, uint64_t) {
      if (first == 0) first = done;
      return done < last_start + limit;
    });
    if (report) break;
    EXPECT_EQ(report.error().code, Code::cancelled) << report.error().message;
    EXPECT_FALSE(fs::exists(out));
    EXPECT_GE(first, last_start);  // nothing that was done is done again
    last_start = first;
    ASSERT_LT(++n_stops, 1000u);
  }
  EXPECT_GT(n_stops, 3u);
  EXPECT_EQ(read_bytes(out), whole);
  EXPECT_FALSE(fs::exists(folder / "out.gguf.part"));
  EXPECT_FALSE(fs::exists(folder / "out.gguf.part.state"));
}

// What an ended process leaves: bytes after the last note. They are not trusted.
TEST(Convert, BytesBehindTheLastNoteAreWrittenAgain) {
  const fs::path folder = llama_folder();
  ASSERT_TRUE(run(folder, folder / "whole.gguf"));
  const fs::path out = folder / "out.gguf";
  int n = 0;
  ASSERT_FALSE(convert({folder.string(), out.string(), DType::F32, ""}, [&](uint64_t, uint64_t) { return ++n < 4; }));
  std::ofstream(out.string() + ".part", std::ios::binary | std::ios::app) << std::string(1000, 'x');
  ASSERT_TRUE(run(folder, out));
  EXPECT_EQ(read_bytes(out), read_bytes(folder / "whole.gguf"));
}

// The part of one checkpoint is never finished with another.
TEST(Convert, APartOfOtherWeightsIsNotContinued) {
  const fs::path folder = llama_folder();
  const fs::path out = folder / "out.gguf";
  int n = 0;
  ASSERT_FALSE(convert({folder.string(), out.string(), DType::F32, ""}, [&](uint64_t, uint64_t) { return ++n < 6; }));
  Tensors tensors = made_up_tensors(llama_shapes());
  for (auto& [name, saved] : tensors) saved.bytes = f32_bytes(made_up(name + " tuned", count(saved.shape)));
  write_shard(folder / "model.safetensors", tensors);
  ASSERT_TRUE(run(folder, out));
  ASSERT_TRUE(run(folder, folder / "fresh.gguf"));
  EXPECT_EQ(read_bytes(out), read_bytes(folder / "fresh.gguf"));
}

TEST(Convert, Fp8WithBlockAndRowScales) {
  const fs::path folder = fixture::scratch_folder("hf");
  const std::string up = "model.layers.0.mlp.up_proj.weight", down = "model.layers.0.mlp.down_proj.weight";
  Json config = llama_config();
  config["quantization_config"] = {{"weight_block_size", {4, 5}}};
  Tensors tensors = made_up_tensors(llama_shapes());
  // 0x38 is 1, 0x3C 1.5, 0xC0 -2, 0x01 the smallest, 2^-9, 0x7E the largest, 448.
  const std::string codes = "\x38\x3C\xC0\x01\x7E";
  const float decoded[] = {1.0f, 1.5f, -2.0f, 0x1p-9f, 448.0f};
  std::string bytes;
  for (uint64_t i = 0; i < kLlamaFf * kLlamaWidth; ++i) bytes += codes[i % 5];
  tensors[up] = {"F8_E4M3", {kLlamaFf, kLlamaWidth}, bytes};
  const std::vector<float> blocks = {1, 2, 3, 4, 5, 6};  // 12 x 8 in blocks of 4 x 5: 3 x 2
  tensors[up + "_scale_inv"] = {"F32", {3, 2}, f32_bytes(blocks)};
  tensors[down] = {"F8_E4M3", {kLlamaWidth, kLlamaFf}, bytes};
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  tensors[down + "_scale"] = {"BF16", {kLlamaWidth, 1}, bf16_bytes(rows)};
  write_checkpoint(folder, config, tensors);
  const auto report = run(folder, folder / "out.gguf");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->left_out.empty());
  const auto file = gguf::File::open((folder / "out.gguf").string());
  ASSERT_TRUE(file);
  const std::vector<float> ups = values_of(*file, "blk.0.ffn_up.weight"),
                           downs = values_of(*file, "blk.0.ffn_down.weight");
  for (uint64_t i = 0; i < kLlamaFf * kLlamaWidth; ++i) {
    EXPECT_EQ(ups[i], decoded[i % 5] * blocks[i / kLlamaWidth / 4 * 2 + i % kLlamaWidth / 5]) << i;
    EXPECT_EQ(downs[i], decoded[i % 5] * rows[i / kLlamaFf]) << i;
  }

  tensors.erase(up + "_scale_inv");
  write_checkpoint(folder, config, tensors);
  fs::remove(folder / "out.gguf");
  expect_refused(folder, {up, "without scales"});
}

}  // namespace
}  // namespace chimere::convert::test

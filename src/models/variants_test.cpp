// The same weights in the other shapes that files have them in: appended or pruned MTP blocks, fused expert tensors,
// the old grouping of Qwen3-Next. Each must give the logits of the plain file, bit for bit.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "gguf/writer.h"
#include "models/draft_block_for_test.h"
#include "models/fixture_for_test.h"
#include "models/registry.h"
#include "models/runs_for_test.h"

namespace chimere::models {
namespace {

using Bytes = std::vector<std::byte>;

struct Tensor {
  std::string name;
  DType type;
  Shape ne;
  Bytes data;

  Bytes rows(uint64_t first, uint64_t n) const {
    const uint64_t bytes = row_bytes(type, ne[0]);
    return Bytes(data.begin() + first * bytes, data.begin() + (first + n) * bytes);
  }
};

struct Model35 {
  gguf::Metadata metadata;
  std::vector<Tensor> tensors;

  explicit Model35(const fixture::fs::path& folder) {
    auto file = gguf::File::open((folder / "model.gguf").string());
    EXPECT_TRUE(file) << file.error().message;
    metadata = file->metadata();
    for (const TensorView& t : file->tensors()) {
      tensors.push_back({std::string(t.name), t.type, t.ne, Bytes(t.data, t.data + t.size_bytes())});
    }
  }
  const Tensor& at(const std::string& name) const {
    for (const Tensor& t : tensors) {
      if (t.name == name) return t;
    }
    ADD_FAILURE() << name;
    return tensors.front();
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
  }

  gguf::Writer writer() const {
    gguf::Writer writer;
    writer.metadata() = metadata;
    for (const Tensor& t : tensors) EXPECT_TRUE(writer.add_tensor(t.name, t.type, t.ne, std::span(t.data)));
    return writer;
  }

  // Writes the file, loads it and runs 40 tokens.
  std::vector<float> logits() const {
    const auto folder = fixture::fs::temp_directory_path() / ("chimere_variant_" + std::to_string(::getpid()));
    fixture::fs::create_directories(folder);
    EXPECT_TRUE(writer().write_file((folder / "model.gguf").string()));
    auto model = fixture::load(folder, BackendKind::cpu, false);
    fixture::fs::remove_all(folder);
    if (!model) return {};
    std::vector<int32_t> tokens;
    for (int i = 0; i < 40; ++i) tokens.push_back(i * 37 % model->n_vocab());
    return feed_alone(model->executable(), tokens, {40});
  }
};

void append(Bytes& to, const Bytes& from) { to.insert(to.end(), from.begin(), from.end()); }

TEST(Variants, MtpBlocksAreNoPartOfTheTrunk) {
  Model35 model(fixture::kept("qwen3_5_moe-B-untied"));
  const std::vector<float> expected = model.logits();
  ASSERT_FALSE(expected.empty());
  const int n = 4;  // trunk layers; the last is an attention layer
  model.metadata.set_int("qwen35moe.block_count", gguf::ValueType::u32, n + 1);
  model.metadata.set_int("qwen35moe.nextn_predict_layers", gguf::ValueType::u32, 1);
  EXPECT_EQ(model.logits(), expected) << "declared, but pruned from the file";

  const std::vector<Tensor> trunk = model.tensors;
  for (Tensor t : trunk) {
    if (t.name.rfind("blk.3.", 0) != 0) continue;
    t.name = "blk.4." + t.name.substr(6);
    model.tensors.push_back(t);
  }
  const uint64_t d = model.at("output_norm.weight").ne[0];
  model.tensors.push_back({"blk.4.nextn.eh_proj.weight", DType::F32, {2 * d, d, 1, 1}, Bytes(2 * d * d * 4)});
  for (const char* part : {"enorm", "hnorm", "shared_head_norm"}) {
    model.tensors.push_back({std::string("blk.4.nextn.") + part + ".weight", DType::F32, {d, 1, 1, 1}, Bytes(d * 4)});
  }
  EXPECT_EQ(model.logits(), expected) << "present";
}

std::unique_ptr<Model> loaded_from(std::span<const std::byte> bytes, bool drafts) {
  const auto path = fixture::fs::temp_directory_path() / ("chimere_drafts_" + std::to_string(::getpid()) + ".gguf");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  LoadOptions options;
  options.drafts = drafts;
  auto model = Model::load(path.string(), BackendKind::cpu, options);
  fixture::fs::remove(path);
  EXPECT_TRUE(model) << model.error().message;
  return model ? std::move(*model) : nullptr;
}

TEST(Variants, DraftBlocksAreLoadedWhenAskedFor) {
  const auto bytes = fixture::with_draft_block(fixture::kept("qwen3_5_moe-B-untied"));
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto plain = loaded_from(*bytes, false), drafting = loaded_from(*bytes, true);
  ASSERT_TRUE(plain && drafting);
  EXPECT_FALSE(plain->has_drafts());
  EXPECT_TRUE(drafting->has_drafts());
  EXPECT_EQ(drafting->draft_problem(), "");
  EXPECT_EQ(drafting->fingerprint(), plain->fingerprint());
  // Pages with another layer in them are no pages of the other.
  EXPECT_NE(drafting->cache_key(), plain->cache_key());
  EXPECT_EQ(plain->cache_key(), cache_key(plain->fingerprint(), {}));
  EXPECT_GT(drafting->executable().layout().page_bytes(), plain->executable().layout().page_bytes());
  // Prompts are cut the same, so that they have the same bits.
  EXPECT_EQ(drafting->executable().prefill_rows(), plain->executable().prefill_rows());
  EXPECT_EQ(drafting->executable().program().trunk().size(), plain->executable().program().ops.size());
  // The ends are the trunk's, and held once.
  const Program& program = drafting->executable().program();
  EXPECT_EQ(std::get<op::Embed>(program.draft_pass().front()).table, std::get<op::Embed>(program.ops.front()).table);
  EXPECT_EQ(std::get<op::LmHead>(program.draft_pass().back()).weight,
            std::get<op::LmHead>(program.trunk().back()).weight);
}

// Who never drafts neither zeroes nor copies the block's layer: its room is set up when the block first reads a text, with
// what it would have found.
TEST(Variants, PagesHaveTheBlocksLayerWhenItReads) {
  const auto bytes = fixture::with_draft_block(fixture::kept("qwen3_5_moe-B-untied"));
  ASSERT_TRUE(bytes);
  const auto plain = loaded_from(*bytes, false), drafting = loaded_from(*bytes, true);
  ASSERT_TRUE(plain && drafting);
  Executable& e = drafting->executable();
  const uint64_t page_bytes = e.layout().page_bytes(), trunk_bytes = plain->executable().layout().page_bytes();
  ASSERT_LT(trunk_bytes, page_bytes);
  const auto used = [&](const Sequence& s) {
    std::vector<uint64_t> of_pages;
    s.for_each_block([&](const StateBlock& block) {
      if (block.size_bytes() == page_bytes) of_pages.push_back(block.used_bytes());
    });
    return of_pages;
  };
  std::vector<int32_t> tokens;
  for (int i = 0; i < 80; ++i) tokens.push_back(i * 37 % drafting->n_vocab());
  Sequence s = new_sequence(e);
  feed(e, s, std::span(tokens).first(70), {70});
  EXPECT_EQ(used(s), (std::vector<uint64_t>(2, trunk_bytes)));
  const auto kept = s.snapshot();
  ASSERT_TRUE(kept);
  std::vector<std::byte> before(page_bytes);
  kept->pages[1]->read(before.data());
  EXPECT_TRUE(std::all_of(before.begin() + static_cast<std::ptrdiff_t>(trunk_bytes), before.end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  feed(e, s, std::span(tokens).subspan(70, 5), {5});
  EXPECT_EQ(used(s), (std::vector<uint64_t>(2, trunk_bytes))) << "a page of its own, in place of the shared one";
  ASSERT_TRUE(s.begin_pass(72, 3));
  EXPECT_EQ(used(s), (std::vector<uint64_t>(2, page_bytes))) << "of all positions before, too";
  EXPECT_EQ(kept->pages[1]->used_bytes(), trunk_bytes) << "but not of what others have";
  std::vector<std::byte> after(page_bytes);
  kept->pages[1]->read(after.data());
  EXPECT_EQ(after, before);
  // Those who go on from what a text left that the block had read, have its layer.
  const auto read = s.snapshot();
  ASSERT_TRUE(read);
  Sequence other = new_sequence(e);
  ASSERT_TRUE(other.restore(*read));
  feed(e, other, std::span(tokens).subspan(75, 2), {2});
  EXPECT_EQ(used(other), (std::vector<uint64_t>(2, page_bytes)));
}

TEST(Variants, FilesWithoutADraftBlockLoadWithoutIt) {
  Model35 model(fixture::kept("qwen3_5_moe-B-untied"));
  for (const int declared : {0, 1}) {
    if (declared > 0) {
      model.metadata.set_int("qwen35moe.block_count", gguf::ValueType::u32, 5);
      model.metadata.set_int("qwen35moe.nextn_predict_layers", gguf::ValueType::u32, 1);
    }
    const auto bytes = model.writer().write_memory();
    ASSERT_TRUE(bytes);
    const auto plain = loaded_from(*bytes, false), drafting = loaded_from(*bytes, true);
    ASSERT_TRUE(plain && drafting);
    EXPECT_FALSE(drafting->has_drafts());
    EXPECT_EQ(drafting->draft_problem(), "");
    EXPECT_EQ(drafting->cache_key(), plain->cache_key());
  }
}

TEST(Variants, ADraftBlockThatCannotBeRunTakesNothingFromTheModel) {
  const auto whole = fixture::with_draft_block(fixture::kept("qwen3_5-A"));
  ASSERT_TRUE(whole);
  const auto file = gguf::File::parse(*whole, "whole");
  ASSERT_TRUE(file);
  gguf::Writer writer;
  writer.metadata() = file->metadata();
  for (const TensorView& t : file->tensors()) {
    if (t.name == "blk.4.nextn.hnorm.weight") continue;
    ASSERT_TRUE(writer.add_tensor(std::string(t.name), t.type, t.ne, std::span(t.data, t.size_bytes())));
  }
  const auto bytes = writer.write_memory();
  ASSERT_TRUE(bytes);
  const auto model = loaded_from(*bytes, true);
  ASSERT_TRUE(model);
  EXPECT_FALSE(model->has_drafts());
  EXPECT_NE(model->draft_problem().find("blk.4.nextn.hnorm.weight"), std::string::npos) << model->draft_problem();
}

TEST(Variants, FusedGateAndUpExperts) {
  Model35 model(fixture::kept("qwen3_5_moe-B-untied"));
  const std::vector<float> expected = model.logits();
  for (int layer = 0; layer < 4; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const Tensor gate = model.at(prefix + "ffn_gate_exps.weight"), up = model.at(prefix + "ffn_up_exps.weight");
    Tensor fused = gate;
    fused.name = prefix + "ffn_gate_up_exps.weight";
    fused.ne[1] *= 2;
    fused.data.clear();
    for (uint64_t e = 0; e < gate.ne[2]; ++e) {
      append(fused.data, gate.rows(e * gate.ne[1], gate.ne[1]));
      append(fused.data, up.rows(e * gate.ne[1], gate.ne[1]));
    }
    model.remove(gate.name);
    model.remove(up.name);
    model.tensors.push_back(fused);
  }
  EXPECT_EQ(model.logits(), expected);
}

TEST(Variants, OldGroupingOfQwen3Next) {
  const auto found = fixture::folders("qwen3_next");
  if (found.empty()) GTEST_SKIP() << "needs $CHIMERE_SHARED";
  Model35 model(found.front());
  const std::vector<float> expected = model.logits();
  ASSERT_FALSE(expected.empty());
  const auto key_heads = static_cast<uint64_t>(*model.metadata.get_int("qwen3next.ssm.group_count", 1, 64));
  const auto value_heads = static_cast<uint64_t>(*model.metadata.get_int("qwen3next.ssm.time_step_rank", 1, 64));
  const auto d_head = static_cast<uint64_t>(*model.metadata.get_int("qwen3next.ssm.state_size", 1, 4096));
  const uint64_t r = value_heads / key_heads;
  int changed = 0;
  for (int layer = 0; layer < 4; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const bool is_recurrent = std::any_of(model.tensors.begin(), model.tensors.end(),
                                          [&](const Tensor& t) { return t.name == prefix + "attn_qkv.weight"; });
    if (!is_recurrent) continue;
    const Tensor qkv = model.at(prefix + "attn_qkv.weight"), z = model.at(prefix + "attn_gate.weight");
    Tensor in = qkv;
    in.name = prefix + "ssm_in.weight";
    in.ne[1] = qkv.ne[1] + z.ne[1];
    in.data.clear();
    for (uint64_t h = 0; h < key_heads; ++h) {
      append(in.data, qkv.rows(h * d_head, d_head));
      append(in.data, qkv.rows((key_heads + h) * d_head, d_head));
      append(in.data, qkv.rows((2 * key_heads + h * r) * d_head, r * d_head));
      append(in.data, z.rows(h * r * d_head, r * d_head));
    }
    model.remove(qkv.name);
    model.remove(z.name);
    model.tensors.push_back(in);
    ++changed;
  }
  EXPECT_EQ(changed, 3);
  EXPECT_EQ(model.logits(), expected);
}

// The rows of q and k of half-rotated heads are bound in another order than the file's; no such model has biases so
// far, and one that has must keep each with its row.
TEST(Variants, BiasesOfHalfRotatedHeadsFollowTheirRows) {
  Model35 model(fixture::kept("bamba-A"));
  const uint64_t n_rows = model.at("blk.1.attn_q.weight").ne[1], head = 32, half = head / 2;
  std::vector<float> file_rows(n_rows);
  std::iota(file_rows.begin(), file_rows.end(), 0.0f);
  const auto bytes = std::as_bytes(std::span(file_rows));
  model.tensors.push_back({"blk.1.attn_q.bias", DType::F32, {n_rows, 1, 1, 1}, Bytes(bytes.begin(), bytes.end())});
  const auto written = model.writer().write_memory();
  ASSERT_TRUE(written);
  const auto file = gguf::File::parse(*written, "bamba-A with a bias");
  ASSERT_TRUE(file) << file.error().message;
  FileSource source(*file);
  const auto program = build_program(source);
  ASSERT_TRUE(program) << program.error().message;
  std::vector<std::vector<float>> biases;
  for (const Op& o : program->ops) {
    const auto* in = std::get_if<op::NormMatmul>(&o);
    if (in && in->outs[0].bias != kNone) biases.push_back(program->vectors[in->outs[0].bias]);
  }
  ASSERT_EQ(biases.size(), 1u);
  for (uint64_t row = 0; row < n_rows; ++row) {
    const uint64_t in_head = row % head, pair = in_head % half;
    EXPECT_EQ(biases[0][row], static_cast<float>(row - in_head + 2 * pair + (in_head >= half))) << row;
  }
}

}  // namespace
}  // namespace chimere::models

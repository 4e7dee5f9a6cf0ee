// LoRA adapters: equal to merged weights, independent of the batch, refused when they do not fit.
#include "models/adapter_for_test.h"
#include "models/adapter_library.h"

namespace chimere::models {
namespace {

using fixture::fs::path;

std::vector<int32_t> tokens(int seed, int n) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((seed * 7919 + i * 104729 + i * i % 31) % 1000);
  return ids;
}

// Logits of every position of each sequence, all in one batch, each with its own adapters.
std::vector<std::vector<float>> run_together(Model& model, const std::vector<std::vector<int32_t>>& texts,
                                             const std::vector<const AdapterSet*>& sets) {
  Batch batch;
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < texts.size(); ++i) {
    auto sequence = Sequence::create(model.executable());
    EXPECT_TRUE(sequence);
    sequences.push_back(std::move(*sequence));
    auto slice = sequences.back().begin(static_cast<int>(texts[i].size()));
    EXPECT_TRUE(slice);
    slice->first_row = batch.n_rows();
    slice->adapters = sets[i];
    for (const int32_t id : texts[i]) {
      batch.logit_rows.push_back(batch.n_rows());
      batch.tokens.push_back(id);
    }
    batch.slices.push_back(*slice);
  }
  const auto n_vocab = static_cast<size_t>(model.n_vocab());
  std::vector<float> logits(batch.tokens.size() * n_vocab);
  EXPECT_TRUE(model.executable().run(batch, {.logits = logits.data()}));
  std::vector<std::vector<float>> out;
  auto at = logits.begin();
  for (const auto& text : texts) {
    out.emplace_back(at, at + static_cast<std::ptrdiff_t>(text.size() * n_vocab));
    at += static_cast<std::ptrdiff_t>(text.size() * n_vocab);
  }
  return out;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

class AdapterTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fixture::kept(GetParam());
    scratch_ = fixture::scratch_folder();
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  path folder_, scratch_;
};

// In float32 the two forms differ by rounding alone: W + BA is rounded once, BAx is added to Wx. The reference keeps
// its sums in double, so 1e-3 is the distance that golden tests allow for float32 logits; without the adapter they are
// hundreds of times further apart.
TEST_P(AdapterTest, EqualsMergedWeights) {
  const std::vector<int32_t> text = tokens(1, 40);
  fixture::write_merged(folder_, 1, 0.75, scratch_ / "model.gguf");
  for (const BackendKind backend : {BackendKind::reference, BackendKind::cpu}) {
    const auto merged = fixture::load(scratch_, backend, true), plain = fixture::load(folder_, backend, true);
    ASSERT_TRUE(merged && plain);
    const AdapterSet set{{{fixture::adapter_of(*plain, folder_, 1, scratch_), 0.75f}}};
    ASSERT_TRUE(set.uses[0].adapter);
    const std::vector<float> expected = run_together(*merged, {text}, {nullptr})[0];
    EXPECT_LT(largest_difference(run_together(*plain, {text}, {&set})[0], expected), 1e-3f) << backend_name(backend);
    EXPECT_GT(largest_difference(run_together(*plain, {text}, {nullptr})[0], expected), 0.1f) << backend_name(backend);
  }
}

// Two adapters, both at once, one twice over, and none, in one batch and each alone: the same bits.
TEST_P(AdapterTest, ABatchOfSeveralEqualsEachAlone) {
  for (const bool exact : {false, true}) {
    const auto model = fixture::load(folder_, BackendKind::cpu, exact);
    ASSERT_TRUE(model);
    const auto one = fixture::adapter_of(*model, folder_, 1, scratch_),
               two = fixture::adapter_of(*model, folder_, 2, scratch_);
    const AdapterSet first{{{one, 1.0f}}}, second{{{two, 0.5f}}}, both{{{one, 1.0f}, {two, -0.5f}}};
    const std::vector<std::vector<int32_t>> texts = {tokens(1, 9), tokens(1, 9), tokens(1, 9), tokens(2, 16),
                                                     tokens(3, 1)};
    const std::vector<const AdapterSet*> sets = {&first, &second, nullptr, &both, &first};
    const auto together = run_together(*model, texts, sets);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(together[i], run_together(*model, {texts[i]}, {sets[i]})[0]) << i;
    }
    EXPECT_GT(largest_difference(together[0], together[2]), 0.01f);
    EXPECT_GT(largest_difference(together[0], together[1]), 0.01f);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AdapterTest, testing::Values("qwen3_5-A", "llama-spm"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(AdapterFile, WhatDoesNotFitIsRefusedByName) {
  const path folder = fixture::kept("llama-spm"), scratch = fixture::scratch_folder();
  const auto model = fixture::load(folder, BackendKind::cpu, false);
  ASSERT_TRUE(model);
  const auto expect = [&](const std::string& word, const std::function<void(gguf::Writer&)>& fill) {
    gguf::Writer writer;
    writer.metadata().set_string("general.type", "adapter");
    writer.metadata().set_string("general.architecture", "llama");
    writer.metadata().set_string("adapter.type", "lora");
    fill(writer);
    ASSERT_TRUE(writer.write_file((scratch / "bad.gguf").string()));
    const auto adapter = load_adapter((scratch / "bad.gguf").string(), "bad", *model);
    ASSERT_FALSE(adapter) << word;
    EXPECT_NE(adapter.error().message.find(word), std::string::npos) << adapter.error().message;
    EXPECT_NE(adapter.error().message.find("bad.gguf"), std::string::npos) << adapter.error().message;
  };
  const std::vector<float> zeros(4096);
  const auto tensor = [&](gguf::Writer& w, const char* name, uint64_t a, uint64_t b) {
    ASSERT_TRUE(w.add_tensor(name, DType::F32, {a, b, 1, 1}, fixture::bytes_of(zeros).first(a * b * 4)));
  };
  expect("no tensors", [](gguf::Writer&) {});
  expect("general.architecture", [](gguf::Writer& w) { w.metadata().set_string("general.architecture", "qwen3"); });
  expect("general.type", [](gguf::Writer& w) { w.metadata().set_string("general.type", "model"); });
  expect("adapter.type", [](gguf::Writer& w) { w.metadata().set_string("adapter.type", "other"); });
  expect("blk.0.attn_q.weight.lora_b", [&](gguf::Writer& w) { tensor(w, "blk.0.attn_q.weight.lora_a", 64, 2); });
  expect("blk.0.attn_q.bias", [&](gguf::Writer& w) { tensor(w, "blk.0.attn_q.bias", 64, 1); });
  expect("blk.0.attn_q.weight", [&](gguf::Writer& w) {
    tensor(w, "blk.0.attn_q.weight.lora_a", 32, 2);
    tensor(w, "blk.0.attn_q.weight.lora_b", 2, 64);
  });
  expect("token_embd.weight", [&](gguf::Writer& w) {
    tensor(w, "token_embd.weight.lora_a", 64, 2);
    tensor(w, "token_embd.weight.lora_b", 2, 64);
  });
  std::filesystem::remove_all(scratch);
}

// The loader puts the rows of Bamba's q and k into another order; those of an adapter stay in the file's.
TEST(AdapterFile, MatricesOfReorderedRowsAreRefused) {
  const path folder = fixture::kept("bamba-A"), scratch = fixture::scratch_folder();
  const auto model = fixture::load(folder, BackendKind::cpu, false);
  ASSERT_TRUE(model);
  const auto adapter = load_adapter(fixture::write_adapter(folder, 1, scratch / "a.gguf"), "a", *model);
  ASSERT_FALSE(adapter);
  EXPECT_NE(adapter.error().message.find("blk.1.attn_q.weight"), std::string::npos) << adapter.error().message;
  std::filesystem::remove_all(scratch);
}

TEST(AdapterLibrary, LoadsListsAndUnloadsWhileInUse) {
  const path folder = fixture::kept("llama-spm"), scratch = fixture::scratch_folder();
  const auto model = fixture::load(folder, BackendKind::cpu, false);
  ASSERT_TRUE(model);
  const std::string file = fixture::write_adapter(folder, 1, scratch / "a.gguf");
  AdapterLibrary library(*model);
  ASSERT_TRUE(library.load("style", file, 0.5f));
  EXPECT_FALSE(library.load("style", file, 1.0f));
  EXPECT_FALSE(library.load("../style", file, 1.0f));
  EXPECT_FALSE(library.load("none", (scratch / "none.gguf").string(), 1.0f));
  ASSERT_EQ(library.list().size(), 1u);
  EXPECT_EQ(library.list()[0].name, "style");
  EXPECT_GT(library.list()[0].n_bytes, 0u);
  const auto set = library.set_of({{"style", std::nullopt}, {"style", 2.0f}});
  ASSERT_TRUE(set);
  EXPECT_EQ((*set)->uses[0].scale, 0.5f);
  EXPECT_EQ((*set)->uses[1].scale, 2.0f);
  const auto missing = library.set_of({{"poem", std::nullopt}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_NE(missing.error().message.find("style"), std::string::npos);
  ASSERT_TRUE(library.unload("style"));
  EXPECT_FALSE(library.unload("style"));
  EXPECT_EQ((*set)->uses[0].adapter->name, "style");
  std::filesystem::remove_all(scratch);
}

TEST(AdapterLibrary, Arguments) {
  const auto with_scale = parse_adapter_argument("poem=adapters/p.gguf:0.5"),
             plain = parse_adapter_argument("a=b:c/d.gguf");
  ASSERT_TRUE(with_scale && plain);
  EXPECT_EQ(with_scale->name, "poem");
  EXPECT_EQ(with_scale->path, "adapters/p.gguf");
  EXPECT_EQ(with_scale->scale, 0.5f);
  EXPECT_EQ(plain->path, "b:c/d.gguf");
  for (const char* bad : {"poem", "=x", "a=", "a=b.gguf:much", "a=b.gguf:"})
    EXPECT_FALSE(parse_adapter_argument(bad)) << bad;
}

}  // namespace
}  // namespace chimere::models

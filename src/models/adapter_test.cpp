// Files of LoRA adapters: refused when they do not fit, and kept while in use. What adapters compute is tested on every
// backend (tests/parity/adapter_test.cpp).
#include "models/adapter_for_test.h"
#include "models/adapter_library.h"

namespace chimere::models {
namespace {

using fixture::fs::path;

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

// Model files that parse but lie: wrong metadata, missing, misshapen or mistyped tensors. Each is refused with a
// message or runs without harm; none crashes or asks for memory beyond a small multiple of the file.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gguf/writer.h"
#include "models/draft_block_for_test.h"
#include "models/fixture_for_test.h"
#include "models/registry.h"

namespace chimere::models {
namespace {

struct Outcome {
  bool accepted = false;
  std::string message;
};

// Parses, binds, loads and runs three tokens, with `drafts` through the draft pass too.
Outcome attempt(std::span<const std::byte> bytes, bool drafts = false) {
  auto file = gguf::File::parse(bytes, "hostile");
  if (!file) return {false, file.error().message};
  FileSource source(*file);
  auto program = build_program(source, drafts);
  if (!program) return {false, program.error().message};
  LoadOptions options;
  options.n_threads = 1;
  options.max_rows = 4;
  auto executable = cpu::compile(std::move(*program), options);
  if (!executable) return {false, executable.error().message};
  auto sequence = Sequence::create(**executable);
  if (!sequence) return {false, sequence.error().message};
  Batch batch;
  batch.slices.push_back(*sequence->begin(3));
  const int32_t last = (*executable)->program().n_vocab - 1;
  batch.tokens = {0, last, last / 2};
  batch.logit_rows = {2};
  std::vector<float> logits((*executable)->program().n_vocab);
  EXPECT_TRUE((*executable)->run(batch, {.logits = logits.data()}));
  const std::vector<float> hidden(3 * static_cast<size_t>((*executable)->program().d_model), 0.5f);
  batch.draft_hidden = hidden.data();
  if (!(*executable)->program().has_drafts()) return {true, ""};
  EXPECT_TRUE((*executable)->run(batch, {.logits = logits.data()}));
  return {true, ""};
}

// A writer with everything of `file` in it; tensors may be changed on the way.
using Change = std::function<bool(TensorView&)>;  // false drops the tensor

std::vector<std::byte> rewrite(const gguf::File& file, const gguf::Metadata& metadata, const Change& change) {
  gguf::Writer writer;
  writer.metadata() = metadata;
  for (const TensorView& original : file.tensors()) {
    TensorView t = original;
    if (!change(t)) continue;
    if (t.ne[0] % info(t.type).block_elems != 0) continue;
    const uint64_t size = t.size_bytes();
    EXPECT_TRUE(
        writer.add_tensor(std::string(t.name), t.type, t.ne,
                          std::span<const std::byte>(original.data, std::min<uint64_t>(size, original.size_bytes()))));
  }
  auto bytes = writer.write_memory();
  return bytes ? std::move(*bytes) : std::vector<std::byte>{};
}

class HostileModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto file = gguf::File::open((fixture::kept(GetParam()) / "model.gguf").string());
    ASSERT_TRUE(file) << file.error().message;
    file_.emplace(std::move(*file));
  }
  static bool keep(TensorView&) { return true; }

  std::optional<gguf::File> file_;
};

TEST_P(HostileModel, TheHonestFileRuns) {
  const Outcome o = attempt(rewrite(*file_, file_->metadata(), keep));
  EXPECT_TRUE(o.accepted) << o.message;
}

TEST_P(HostileModel, EveryNumberSetToNonsense) {
  const int64_t integers[] = {0, 1, 2, 3, 7, 255, 4096, 65537, (int64_t{1} << 31) - 1, int64_t{1} << 40, -1};
  const double floats[] = {
      0.0, -1.0, 1e-30, 1e30, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  int refused = 0, tried = 0;
  for (const auto& [key, value] : file_->metadata().entries()) {
    if (value.is_array || key.rfind("tokenizer.", 0) == 0 || key.rfind("general.", 0) == 0) continue;
    const bool is_float = std::holds_alternative<double>(value.data);
    for (int i = 0; i < 11; ++i) {
      if (is_float && i >= 6) break;
      gguf::Metadata metadata = file_->metadata();
      if (is_float) {
        metadata.set_float(key, floats[i]);
      } else {
        metadata.set_int(key, gguf::ValueType::i64, integers[i]);
      }
      const Outcome o = attempt(rewrite(*file_, metadata, keep));
      ++tried;
      if (!o.accepted) {
        ++refused;
        EXPECT_GT(o.message.size(), 10u) << key;
      }
    }
  }
  EXPECT_GT(tried, 50);
  EXPECT_GT(refused, tried / 2);
}

TEST_P(HostileModel, EveryTensorMissing) {
  for (const TensorView& victim : file_->tensors()) {
    const Outcome o = attempt(rewrite(*file_, file_->metadata(), [&](TensorView& t) { return t.name != victim.name; }));
    // An output head or a bias may be absent; what is missed is named.
    const bool is_named = o.message.find(std::string(victim.name)) != std::string::npos;
    EXPECT_TRUE(o.accepted || is_named) << o.message;
    const bool optional = victim.name == "output.weight" || victim.name.find("bias") != std::string_view::npos;
    EXPECT_TRUE(!o.accepted || optional) << victim.name;
  }
}

TEST_P(HostileModel, EveryTensorMisshapen) {
  for (const TensorView& victim : file_->tensors()) {
    for (int change = 0; change < 4; ++change) {
      const Outcome o = attempt(rewrite(*file_, file_->metadata(), [&](TensorView& t) {
        if (t.name != victim.name) return true;
        if (change == 0) t.ne[0] /= 2;
        if (change == 1) t.ne[1] = (t.ne[1] + 1) / 2;
        if (change == 2) std::swap(t.ne[0], t.ne[1]);
        if (change == 3) t.ne[2] = 1;
        for (uint64_t& d : t.ne) d = std::max<uint64_t>(d, 1);
        return true;
      }));
      EXPECT_TRUE(o.accepted || !o.message.empty());
    }
  }
}

TEST_P(HostileModel, EveryTensorOfEveryType) {
  for (const TensorView& victim : file_->tensors()) {
    for (const DTypeInfo& type : all_dtypes()) {
      if (victim.ne[0] % type.block_elems != 0) continue;
      if (row_bytes(type.type, victim.ne[0]) > victim.row_bytes()) continue;  // the data would not suffice
      const Outcome o = attempt(rewrite(*file_, file_->metadata(), [&](TensorView& t) {
        if (t.name == victim.name) t.type = type.type;
        return true;
      }));
      EXPECT_TRUE(o.accepted || !o.message.empty());
    }
  }
}

TEST(HostileDraftBlock, NoTensorAndNoNumberDoesHarm) {
  const auto whole = fixture::with_draft_block(fixture::kept("qwen3_5_moe-B-untied"), {.has_ends = true});
  ASSERT_TRUE(whole);
  const auto file = gguf::File::parse(*whole, "whole");
  ASSERT_TRUE(file);
  const auto keep = [](TensorView&) { return true; };
  ASSERT_TRUE(attempt(rewrite(*file, file->metadata(), keep), true).accepted);
  for (const TensorView& victim : file->tensors()) {
    if (!victim.name.starts_with("blk.4.")) continue;
    SCOPED_TRACE(victim.name);
    const Outcome o =
        attempt(rewrite(*file, file->metadata(), [&](TensorView& t) { return t.name != victim.name; }), true);
    // The block is known by its first matrix: without it, it is one more of the trunk's, which lacks other tensors.
    const bool is_first = victim.name.ends_with("eh_proj.weight");
    EXPECT_TRUE(o.accepted || is_first || o.message.find(std::string(victim.name)) != std::string::npos) << o.message;
    for (int change = 0; change < 3; ++change) {
      const Outcome changed = attempt(rewrite(*file, file->metadata(),
                                              [&](TensorView& t) {
                                                if (t.name != victim.name) return true;
                                                if (change == 0) t.ne[0] /= 2;
                                                if (change == 1) t.ne[1] = (t.ne[1] + 1) / 2;
                                                if (change == 2) t.type = DType::F16;
                                                return true;
                                              }),
                                      true);
      EXPECT_TRUE(changed.accepted || !changed.message.empty());
    }
  }
  for (const char* key : {"block_count", "nextn_predict_layers", "attention.head_count_kv"}) {
    for (const int64_t value : {0, 1, 2, 3, 4, 5, 6, 512}) {
      gguf::Metadata metadata = file->metadata();
      metadata.set_int(std::string("qwen35moe.") + key, gguf::ValueType::u32, value);
      const Outcome o = attempt(rewrite(*file, metadata, keep), true);
      EXPECT_TRUE(o.accepted || o.message.size() > 10) << key << " " << value;
    }
  }
  // Heads of the block alone.
  for (const int64_t value : {0, 2, 3, 1024}) {
    gguf::Metadata metadata = file->metadata();
    metadata.set("qwen35moe.attention.head_count_kv",
                 {gguf::ValueType::i32, true, std::vector<int64_t>{1, 1, 1, 1, value}});
    EXPECT_FALSE(attempt(rewrite(*file, metadata, keep), true).accepted) << value;
    EXPECT_TRUE(attempt(rewrite(*file, metadata, keep), false).accepted) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Kept, HostileModel,
                         testing::Values("qwen3_5_moe-B-untied", "qwen2-A", "nemotron_h-moe-L", "bamba-A"),
                         [](const auto& i) {
                           std::string name = i.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace chimere::models

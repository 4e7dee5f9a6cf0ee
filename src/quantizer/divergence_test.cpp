#include "quantizer/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/scratch_for_test.h"
#include "quantizer/files_for_test.h"
#include "quantizer/losses.h"
#include "quantizer/probes.h"

namespace chimere::quantizer {
namespace {

LoadOptions exact_load() {
  LoadOptions options;
  options.exact = true;
  options.n_threads = 2;
  return options;
}

Windows some_windows(int n_vocab) {
  Windows windows;
  windows.context = 24;
  for (int i = 0; i < 48; ++i) windows.tokens.push_back((i * 31 + 7) % n_vocab);
  return windows;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

TEST(Divergence, IsNothingFromTheModelItselfAndSomethingFromItsRounding) {
  const auto model = models::Model::load(fixture::model_path(), models::BackendKind::cpu, exact_load());
  ASSERT_TRUE(model) << model.error().message;
  const std::string path = chimere::fixture::scratch_folder().string() + "/base.kld";
  const Windows windows = some_windows((*model)->n_vocab());
  ASSERT_TRUE(write_base(**model, windows, path, {}));
  const auto base = open_base(path);
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->windows.tokens, windows.tokens);
  const auto same = measure_divergence(**model, *base, {});
  ASSERT_TRUE(same);
  // Codes are at most 2.3e-4 off in the logarithm, and what that costs is its square.
  EXPECT_LT(same->mean, 1e-6);
  EXPECT_EQ(same->n_tokens, 2 * windows.rows_in_window());
  EXPECT_EQ(same->same_top, 1);
  EXPECT_NEAR(same->ratio, 1, 1e-3);

  const auto file = gguf::File::open(fixture::model_path());
  ASSERT_TRUE(file);
  std::map<std::string, DType> types;
  for (const TensorView& t : file->tensors()) {
    if (why_kept(t).empty()) types[std::string(t.name)] = nearest_possible(t, DType::Q4_0);
  }
  const auto rounded = load_quantised(*file, types, nullptr, exact_load());
  ASSERT_TRUE(rounded) << rounded.error().message;
  const auto moved = measure_divergence(**rounded, *base, {});
  ASSERT_TRUE(moved);
  EXPECT_GT(moved->mean, 100 * same->mean);
  EXPECT_LE(moved->median, moved->p99);
  EXPECT_LE(moved->p99, moved->largest);
  // In memory, the base is the same.
  const auto held = measure_base(**model, windows);
  ASSERT_TRUE(held);
  const auto by_memory = measure_divergence(**rounded, *held, {});
  ASSERT_TRUE(by_memory);
  EXPECT_EQ(by_memory->mean, moved->mean);
}

TEST(Divergence, DamagedBasesAreRefused) {
  const auto model = models::Model::load(fixture::model_path(), models::BackendKind::cpu, exact_load());
  ASSERT_TRUE(model);
  const std::string path = chimere::fixture::scratch_folder().string() + "/base.kld";
  ASSERT_TRUE(write_base(**model, some_windows((*model)->n_vocab()), path, {}));
  const std::vector<std::byte> whole = bytes_of(path);
  ASSERT_TRUE(parse_base(whole, "x"));
  for (const size_t n : {size_t{0}, size_t{7}, size_t{31}, size_t{40}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_FALSE(parse_base(std::span(whole).first(n), "x")) << n;
  }
  for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 200) {
    std::vector<std::byte> other = whole;
    other[at] ^= std::byte{0x10};
    EXPECT_FALSE(parse_base(other, "x")) << at;
  }
}

// The draft block does not move the trunk's answers, and still may not be thrown away: it counts a quarter of its like.
TEST(Probes, TensorsThatMoveNothingGetAQuarterOfTheSlopeOfTheirLike) {
  const auto file = gguf::File::open(fixture::model_path("qwen3_5_moe-B-untied"));
  ASSERT_TRUE(file) << file.error().message;
  gguf::Writer writer;
  writer.metadata() = file->metadata();
  for (const TensorView& t : file->tensors()) {
    ASSERT_TRUE(writer.add_tensor(std::string(t.name), t.type, t.ne, {t.data, t.size_bytes()}));
  }
  // A block behind the last that the trunk never runs.
  for (const TensorView& t : file->tensors()) {
    if (part_of(t.name).layer != 0 || part_of(t.name).part != "ffn_up_exps") continue;
    ASSERT_TRUE(writer.add_tensor("blk.99.ffn_up_exps.weight", t.type, t.ne, {t.data, t.size_bytes()}));
  }
  const std::string path = chimere::fixture::scratch_folder().string() + "/with_block.gguf";
  ASSERT_TRUE(writer.write_file(path));
  const auto with_block = gguf::File::open(path);
  ASSERT_TRUE(with_block);
  const auto plan = plan_for(*with_block, {});
  ASSERT_TRUE(plan);
  auto losses = measure_losses(*with_block, *plan, nullptr, {}, 2, {});
  ASSERT_TRUE(losses) << losses.error().message;
  const auto n_vocab = static_cast<int>(with_block->find("token_embd.weight")->ne[1]);
  const Status probed =
      measure_slopes(*with_block, *plan, nullptr, some_windows(n_vocab), 1000, exact_load(), {}, *losses);
  ASSERT_TRUE(probed) << probed.error().message;
  EXPECT_TRUE(losses->probed);
  std::vector<double> alike;
  for (const auto& [name, t] : losses->tensors) {
    EXPECT_GT(t.slope, 0) << name;
    if (part_of(name).part == "ffn_up_exps" && part_of(name).layer != 99) alike.push_back(t.slope);
  }
  ASSERT_FALSE(alike.empty());
  std::sort(alike.begin(), alike.end());
  EXPECT_DOUBLE_EQ(losses->tensors["blk.99.ffn_up_exps.weight"].slope, 0.25 * alike[alike.size() / 2]);
}

TEST(Probes, OwnTextIsTheSameForTheSameSeed) {
  const auto model = models::Model::load(fixture::model_path(), models::BackendKind::cpu, exact_load());
  ASSERT_TRUE(model);
  const auto a = own_text(**model, 12, 2, 1, 5), b = own_text(**model, 12, 2, 1, 5), c = own_text(**model, 12, 2, 1, 6);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->tokens, b->tokens);
  EXPECT_NE(a->tokens, c->tokens);
  EXPECT_EQ(a->n_windows(), 2u);
}

}  // namespace
}  // namespace chimere::quantizer

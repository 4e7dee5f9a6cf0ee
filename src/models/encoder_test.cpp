// Encoders: hidden states of a whole model against the reference implementation's, and their ops against the oracle.
#include <gtest/gtest.h>

#include <cmath>

#include "models/fixture_for_test.h"
#include "models/program_for_test.h"

namespace chimere {
namespace {

// All hidden states of texts that run in one batch; as pairs, a third of each is of the second kind.
std::vector<std::vector<float>> hidden_of(Executable& executable, const std::vector<std::vector<int32_t>>& texts,
                                          bool as_pairs = false) {
  Batch batch;
  std::deque<Sequence> sequences;
  for (const std::vector<int32_t>& text : texts) {
    sequences.push_back(new_sequence(executable));
    auto slice = sequences.back().begin(static_cast<int>(text.size()));
    EXPECT_TRUE(slice);
    slice->first_row = batch.n_rows();
    if (as_pairs) slice->second_kind_at = static_cast<int32_t>(2 * text.size() / 3);
    batch.slices.push_back(*slice);
    batch.tokens.insert(batch.tokens.end(), text.begin(), text.end());
  }
  for (int i = 0; i < batch.n_rows(); ++i) batch.logit_rows.push_back(i);
  const auto d = static_cast<size_t>(executable.program().d_model);
  std::vector<float> hidden(batch.tokens.size() * d);
  EXPECT_TRUE(executable.run(batch, {.hidden = hidden.data()}));
  std::vector<std::vector<float>> out;
  auto at = hidden.begin();
  for (const std::vector<int32_t>& text : texts) {
    const auto end = at + static_cast<std::ptrdiff_t>(text.size() * d);
    out.emplace_back(at, end);
    at = end;
  }
  return out;
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float d = std::abs(a[i] - b[i]);
    worst = std::isfinite(d) ? std::max(worst, d) : INFINITY;
  }
  return worst;
}

std::vector<int32_t> ids(std::span<const int32_t> span) { return {span.begin(), span.end()}; }

TEST(Encoder, HiddenStatesMatchTheReferenceImplementation) {
  const auto folder = fixture::kept("bert-mean");
  auto arrays = fixture::read_arrays(folder);
  for (const models::BackendKind backend : {models::BackendKind::reference, models::BackendKind::cpu}) {
    auto model = fixture::load(folder, backend, true);
    ASSERT_TRUE(model);
    EXPECT_FALSE(model->executable().program().has_logits());
    for (const char* length : {"48", "150"}) {
      const auto tokens = ids(arrays[std::string("tokens_") + length].ints());
      const auto expected = arrays[std::string("hidden_") + length].floats();
      EXPECT_LE(largest_difference(hidden_of(model->executable(), {tokens})[0], expected), 1e-4f) << length;
    }
  }
}

TEST(Encoder, ATextIsTheSameAloneAndAmongOthers) {
  const auto folder = fixture::kept("bert-mean");
  auto arrays = fixture::read_arrays(folder);
  auto model = fixture::load(folder, models::BackendKind::cpu, false);
  ASSERT_TRUE(model);
  const auto tokens = arrays["tokens_150"].ints();
  std::vector<std::vector<int32_t>> texts;
  for (const size_t n : {1, 16, 17, 5, 65, 48}) texts.push_back(ids(tokens.subspan(3 * texts.size(), n)));
  const auto together = hidden_of(model->executable(), texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(hidden_of(model->executable(), {texts[i]})[0] == together[i]) << texts[i].size() << " tokens";
  }
}

// A layer of sizes that divide nothing, on several threads.
TEST(Encoder, OpsMatchTheOracleAtOddSizes) {
  constexpr int kWidth = 42, kHeads = 3, kHeadDim = 14, kFf = 75;
  ProgramForTest p(61);
  const BufferId x = p.input(kWidth);
  auto& embed = std::get<op::Embed>(p.program.ops.back());
  embed.positions = p.matrix(DType::F16, kWidth, 90, 1, 0.5f);
  embed.kinds = p.vector(2 * kWidth, 0.1f, 0.5f);
  p.program.ops.push_back(op::LayerNorm{x, p.vector(kWidth, 1, 0.1f), p.vector(kWidth, 0, 0.1f), 1e-12f});
  const BufferId q = p.buffer(kWidth), k = p.buffer(kWidth), v = p.buffer(kWidth), out = p.buffer(kWidth);
  op::NormMatmul in{.x = x, .outs = {}};
  for (const BufferId to : {q, k, v}) {
    in.outs.push_back({p.matrix(DType::F32, kWidth, kWidth, 1, 0.3f), p.vector(kWidth, 0, 0.1f), to});
  }
  p.program.ops.push_back(std::move(in));
  p.program.kv_layers.push_back({kHeads, kHeadDim, kHeadDim});
  op::Attention attention{};
  attention.q = q, attention.k = k, attention.v = v, attention.out = out;
  attention.n_heads = attention.n_kv_heads = kHeads;
  attention.head_dim_k = attention.head_dim_v = kHeadDim;
  attention.scale = 0.3f;
  attention.bidirectional = true;
  p.program.ops.push_back(attention);
  p.program.ops.push_back(op::MatmulAdd{out, p.matrix(DType::F32, kWidth, kWidth, 1, 0.3f), kNone, x});
  const BufferId ff = p.buffer(kFf);
  p.program.ops.push_back(op::NormMatmul{x, kNone, 0, {{p.matrix(DType::F32, kWidth, kFf, 1, 0.3f), kNone, ff}}});
  p.program.ops.push_back(op::Gelu{ff});
  p.program.ops.push_back(op::MatmulAdd{ff, p.matrix(DType::F32, kFf, kWidth, 1, 0.3f), kNone, x});
  p.program.ops.push_back(op::HiddenOut{x});
  p.program.d_model = kWidth;

  std::vector<std::vector<int32_t>> texts;
  for (const int n : {1, 2, 16, 17, 64, 65, 83}) texts.push_back(script_tokens(n, 0, n, 61));
  LoadOptions options;
  options.kv = {DType::F32, DType::F32, false};
  options.max_rows = 300;
  options.exact = true;
  options.n_threads = 3;
  const ExecutablePtr oracle = compiled(reference::compile(p.program, options));
  const ExecutablePtr cpu = compiled(cpu::compile(p.program, options));
  ASSERT_TRUE(oracle && cpu);
  const auto expected = hidden_of(*oracle, texts, true), found = hidden_of(*cpu, texts, true);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_LE(largest_difference(found[i], expected[i]), 1e-4f) << texts[i].size() << " tokens";
  }
}

}  // namespace
}  // namespace chimere

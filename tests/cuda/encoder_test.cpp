// Encoders on the CUDA backend, in the emulator: hidden states of a whole model against the reference implementation's,
// texts in any company, and the ops against the oracle at odd sizes.
#include <cstdio>

#include "card_models.h"
#include "models/program_for_test.h"

namespace chimere {
namespace {

using namespace card;  // NOLINT

// All hidden states of texts that run in one batch; as pairs, a third of each is of the second kind.
std::vector<std::vector<float>> hidden_of(Executable& executable, const std::vector<std::span<const int32_t>>& texts,
                                          bool as_pairs = false) {
  Batch batch;
  std::deque<Sequence> sequences;
  for (const std::span<const int32_t> text : texts) {
    sequences.push_back(start(executable));
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
  const Status done = executable.run(batch, {.hidden = hidden.data()});
  EXPECT_TRUE(done) << done.error().message;
  std::vector<std::vector<float>> out;
  auto at = hidden.begin();
  for (const std::span<const int32_t> text : texts) {
    const auto end = at + static_cast<std::ptrdiff_t>(text.size() * d);
    out.emplace_back(at, end);
    at = end;
  }
  return out;
}

LoadOptions encoder_options(bool exact) {
  LoadOptions options = options_for(exact, exact ? kFloatKv : kHalfKv);
  options.max_rows = 160;
  return options;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return ab / std::sqrt(aa * bb);
}

// The mean of all rows, which is what the fixture's model is pooled by.
std::vector<float> pooled(std::span<const float> hidden, size_t d) {
  std::vector<float> mean(d);
  for (size_t i = 0; i < hidden.size(); ++i) mean[i % d] += hidden[i] / static_cast<float>(hidden.size() / d);
  return mean;
}

TEST(CudaEncoder, HiddenStatesMatchTheReferenceImplementation) {
  const fs::path folder = fixture::kept("bert-mean");
  auto arrays = fixture::read_arrays(folder);
  for (const bool exact : {true, false}) {
    auto card = Loaded::open(folder, cuda::compile, encoder_options(exact));
    ASSERT_TRUE(card) << card.error().message;
    const auto d = static_cast<size_t>((*card)->program().d_model);
    for (const char* length : {"48", "150"}) {
      // The longer text takes the emulator seconds: once, and not where addresses are checked.
      if (std::string(length) == "150" && (!exact || kSanitized)) continue;
      const auto expected = arrays[std::string("hidden_") + length].floats();
      const auto found = hidden_of(**card, {arrays[std::string("tokens_") + length].ints()})[0];
      const float difference = max_difference(found, expected);
      const double alike = cosine(pooled(found, d), pooled(expected, d));
      std::printf("    %s tokens, exact %d: difference %.1e, cosine of the means 1 - %.1e\n", length, exact, difference,
                  1 - alike);
      if (exact) {
        EXPECT_LE(difference, 1e-4f) << length;
      }
      EXPECT_GE(alike, 0.9999) << length;
    }
  }
}

// Texts of both classes, and short ones a second time, by a graph.
TEST(CudaEncoder, ATextIsTheSameAloneAndAmongOthers) {
  const fs::path folder = fixture::kept("bert-mean");
  auto arrays = fixture::read_arrays(folder);
  auto card = Loaded::open(folder, cuda::compile, encoder_options(false));
  ASSERT_TRUE(card) << card.error().message;
  const auto tokens = arrays["tokens_150"].ints();
  std::vector<std::span<const int32_t>> texts;
  for (const size_t n : {1, 16, 17, 5, 65, 48}) texts.push_back(tokens.subspan(3 * texts.size(), n));
  const auto together = hidden_of(**card, texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    for (int again = 0; again < (texts[i].size() == 5 ? 3 : 1); ++again) {
      EXPECT_EQ(hidden_of(**card, {texts[i]})[0], together[i]) << texts[i].size() << " tokens";
    }
  }
}

// A layer of any size, in float32.
TEST(CudaEncoder, OpsMatchTheOracle) {
  struct Size {
    int heads, head_dim, ff;
    DType type;
  };
  for (const Size size : {Size{3, 14, 75, DType::F32}, Size{2, 64, 160, DType::Q8_0}}) {
    const int width = size.heads * size.head_dim;
    ProgramForTest p(61);
    const BufferId x = p.input(width);
    auto& embed = std::get<op::Embed>(p.program.ops.back());
    embed.positions = p.matrix(DType::F16, width, 90, 1, 0.5f);
    embed.kinds = p.vector(2 * width, 0.1f, 0.5f);
    p.program.ops.push_back(op::LayerNorm{x, p.vector(width, 1, 0.1f), p.vector(width, 0, 0.1f), 1e-12f});
    const BufferId q = p.buffer(width), k = p.buffer(width), v = p.buffer(width), out = p.buffer(width);
    op::NormMatmul in{.x = x, .outs = {}};
    for (const BufferId to : {q, k, v}) {
      in.outs.push_back({p.matrix(size.type, width, width, 1, 0.1f), p.vector(width, 0, 0.1f), to});
    }
    p.program.ops.push_back(std::move(in));
    p.program.kv_layers.push_back({size.heads, size.head_dim, size.head_dim});
    op::Attention attention{};
    attention.q = q, attention.k = k, attention.v = v, attention.out = out;
    attention.n_heads = attention.n_kv_heads = size.heads;
    attention.head_dim_k = attention.head_dim_v = size.head_dim;
    attention.scale = 0.2f;
    attention.bidirectional = true;
    p.program.ops.push_back(attention);
    p.program.ops.push_back(
        op::MatmulAdd{out, p.matrix(size.type, width, width, 1, 0.1f), p.vector(width, 0, 0.1f), x});
    const BufferId ff = p.buffer(size.ff);
    p.program.ops.push_back(op::NormMatmul{x, kNone, 0, {{p.matrix(size.type, width, size.ff, 1, 0.1f), kNone, ff}}});
    p.program.ops.push_back(op::Gelu{ff});
    p.program.ops.push_back(op::MatmulAdd{ff, p.matrix(DType::F32, size.ff, width, 1, 0.1f), kNone, x});
    p.program.ops.push_back(op::HiddenOut{x});
    p.program.d_model = width;

    std::vector<std::vector<int32_t>> tokens;
    for (const int n : {1, 2, 16, 17, 64, 65, 83}) tokens.push_back(script_tokens(n, 0, n, 61));
    const std::vector<std::span<const int32_t>> texts(tokens.begin(), tokens.end());
    LoadOptions options = options_for(true, kFloatKv);
    options.max_rows = 300;
    const ExecutablePtr oracle = compiled(reference::compile(p.program, options));
    const ExecutablePtr exact = compiled(cuda::compile(p.program, options));
    options.exact = false;
    options.kv = kHalfKv;
    const ExecutablePtr fast = compiled(cuda::compile(p.program, options));
    ASSERT_TRUE(oracle && exact && fast);
    const auto expected = hidden_of(*oracle, texts, true), found = hidden_of(*exact, texts, true),
               rough = hidden_of(*fast, texts, true);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_LE(max_difference(found[i], expected[i]), 1e-4f) << texts[i].size() << " tokens of " << size.head_dim;
      EXPECT_GE(cosine(rough[i], expected[i]), 0.999) << texts[i].size() << " tokens of " << size.head_dim;
    }
  }
}

}  // namespace
}  // namespace chimere

// Gated DeltaNet between its projections on the CUDA backend, in the emulator. The norm of its heads is finished by
// whoever reads them (kernels/head_squares.h), and who that is depends on the weights, on exact mode and on the
// adapters of the pass: the bits of a row must not.
#include <gtest/gtest.h>

#include <vector>

#include "card_models.h"
#include "models/program_for_test.h"

namespace chimere {
namespace {

constexpr int kWidth = 128, kVocab = 48;

class DeltaRule {
 public:
  explicit DeltaRule(DType out_type) : p_(kVocab) {
    p_.program.d_model = kWidth;
    const BufferId x = p_.input(kWidth);
    mix_.d_head = 128;
    mix_.n_key_heads = 1;
    mix_.n_value_heads = 2;
    mix_.eps = 1e-6f;
    const int heads = mix_.n_value_heads, values = heads * mix_.d_head;
    mix_.qkv = p_.buffer(mix_.channels());
    mix_.z = p_.buffer(values);
    mix_.alpha = p_.buffer(heads);
    mix_.beta = p_.buffer(heads);
    mix_.out = p_.buffer(values);
    add_layer(x, values, out_type);
    p_.program.ops.push_back(op::LmHead{x, norm(kWidth), 1e-6f, p_.matrix(DType::Q8_0, kWidth, kVocab)});
  }

  std::unique_ptr<Executable> compile(card::Loaded::Compile compile, bool exact) const {
    return compiled(compile(p_.program, card::options_for(exact, card::kFloatKv)));
  }

  // A change of the product behind the delta rule.
  std::shared_ptr<const Adapter> adapter(Executable& executable) const {
    auto made = std::make_shared<Adapter>();
    made->by_matrix.resize(p_.program.matrices.size());
    LowRank& change = made->by_matrix[static_cast<size_t>(out_)];
    change.rank = 2;
    change.a.assign(2u * p_.program.matrices[out_].ne[0], 0.02f);
    change.b.assign(2u * kWidth, 0.5f);
    auto held = executable.hold_adapter(*made);
    EXPECT_TRUE(held) << held.error().message;
    made->held = std::move(*held);
    return made;
  }

 private:
  VectorId norm(int width) { return p_.vector(width, 1.0f, 0.2f); }

  void add_layer(BufferId x, int values, DType out_type) {
    const int heads = mix_.n_value_heads;
    mix_.conv = p_.vector(int64_t{mix_.channels()} * 4, 0, 0.5f);
    mix_.a = p_.vector(heads, -0.5f, 0.1f);
    mix_.dt_bias = p_.vector(heads, 0, 1);
    mix_.norm = norm(mix_.d_head);
    mix_.recurrent_layer = static_cast<int>(p_.program.recurrent_layers.size());
    p_.program.recurrent_layers.push_back({3, mix_.channels(), heads, mix_.d_head, mix_.d_head});
    p_.program.ops.push_back(op::NormMatmul{x,
                                            norm(kWidth),
                                            1e-6f,
                                            {{p_.matrix(DType::Q8_0, kWidth, mix_.channels()), kNone, mix_.qkv},
                                             {p_.matrix(DType::Q8_0, kWidth, values), kNone, mix_.z},
                                             {p_.matrix(DType::F32, kWidth, heads), kNone, mix_.alpha},
                                             {p_.matrix(DType::F32, kWidth, heads), kNone, mix_.beta}}});
    p_.program.ops.push_back(mix_);
    out_ = p_.matrix(out_type, values, kWidth);
    p_.program.ops.push_back(op::MatmulAdd{mix_.out, out_, kNone, x});
  }

  ProgramForTest p_;
  op::GdnMix mix_{};
  MatrixId out_ = kNone;
};

TEST(CudaDeltaRule, LogitsAreThoseOfTheOracle) {
  const std::vector<int32_t> tokens = script_tokens(1, 0, 20, kVocab);
  for (const DType type : {DType::Q5_K, DType::F16}) {
    const DeltaRule model(type);
    const auto oracle = model.compile(reference::compile, true), exact = model.compile(cuda::compile, true),
               fast = model.compile(cuda::compile, false);
    const std::vector<float> expected = card::feed_alone(*oracle, tokens, {20});
    for (const std::vector<int>& lengths : {std::vector<int>{2, 16}, {17, 1}}) {
      EXPECT_LE(card::max_difference(expected, card::feed_alone(*exact, tokens, lengths)), card::kExactLimit);
      EXPECT_LE(card::mean_divergence(expected, card::feed_alone(*fast, tokens, lengths), kVocab), 1.6e-2);
    }
  }
}

// One row, a few and many take different products; beside a row with adapters another launch finishes the norm.
TEST(CudaDeltaRule, ARowsBitsAreItsOwn) {
  const std::vector<int32_t> tokens = script_tokens(2, 0, 9, kVocab);
  const std::span<const int32_t> all(tokens);
  for (const DType type : {DType::Q5_K, DType::F16}) {
    const DeltaRule model(type);
    for (const bool exact : {false, true}) {
      const auto executable = model.compile(cuda::compile, exact);
      const AdapterSet adapted{{{model.adapter(*executable), 1.0f}}};
      const std::vector<float> alone = card::feed_alone(*executable, all, {1});
      EXPECT_EQ(card::feed_alone(*executable, all, {3}), alone);
      EXPECT_EQ(card::feed_alone(*executable, all, {9}), alone);

      Sequence mine = card::start(*executable), other = card::start(*executable);
      const std::vector<float> beside =
          card::step(*executable, {{&other, all.first(2), &adapted}, {&mine, all.first(5), nullptr}});
      const std::span<const float> plain(beside.data() + 2 * kVocab, 5 * kVocab);
      EXPECT_EQ(card::max_difference(plain, std::span(alone).first(5 * kVocab)), 0.0f);
      EXPECT_GT(card::max_difference(std::span(beside).first(2 * kVocab), std::span(alone).first(2 * kVocab)), 0.01f);
    }
  }
}

}  // namespace
}  // namespace chimere

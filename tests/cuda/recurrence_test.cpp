// Gated DeltaNet and Mamba-2 between their projections on the CUDA backend, in the emulator. The norm of their heads or
// groups is finished by whoever reads them (kernels/common/head_squares.h), and who that is depends on the weights, on
// exact mode and on the adapters of the pass: the bits of a row must not.
#include <gtest/gtest.h>

#include <vector>

#include "models/compare_for_test.h"
#include "parity/loaded_model.h"
#include "parity/program.h"

namespace chimere {
namespace {

using namespace parity;  // NOLINT

constexpr int kWidth = 128, kVocab = 48;

constexpr float kEps = 1e-6f;

// One layer; subclasses add what is in it.
class RecurrentModel {
 public:
  virtual ~RecurrentModel() = default;

  ExecutablePtr compile(CompileFunction compile, bool exact) const {
    return compiled(compile(p_.program, options_for(exact, kFloatKv)));
  }

  // A change of the product behind the recurrence.
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

 protected:
  RecurrentModel() : p_(kVocab) {
    p_.program.d_model = kWidth;
    x_ = p_.input(kWidth);
  }

  VectorId norm(int width) { return p_.vector(width, 1.0f, 0.2f); }

  template <class Mix>
  void add_layer(Mix mix, int out_width, const RecurrentLayer& state, std::vector<op::Projection> in, DType out_type) {
    mix.eps = kEps;
    mix.recurrent_layer = static_cast<int>(p_.program.recurrent_layers.size());
    mix.out = p_.buffer(out_width);
    p_.program.recurrent_layers.push_back(state);
    p_.program.ops.push_back(op::NormMatmul{x_, norm(kWidth), kEps, std::move(in)});
    p_.program.ops.push_back(mix);
    out_ = p_.matrix(out_type, out_width, kWidth);
    p_.program.ops.push_back(op::MatmulAdd{mix.out, out_, kNone, x_});
    p_.program.ops.push_back(op::LmHead{x_, norm(kWidth), kEps, p_.matrix(DType::Q8_0, kWidth, kVocab)});
  }

  ProgramForTest p_;
  BufferId x_ = kNone;

 private:
  MatrixId out_ = kNone;
};

class DeltaRule : public RecurrentModel {
 public:
  explicit DeltaRule(DType out_type) {
    op::GdnMix mix{};
    mix.d_head = 128;
    mix.n_key_heads = 1;
    mix.n_value_heads = 2;
    const int heads = mix.n_value_heads, values = heads * mix.d_head;
    mix.qkv = p_.buffer(mix.channels());
    mix.z = p_.buffer(values);
    mix.alpha = p_.buffer(heads);
    mix.beta = p_.buffer(heads);
    mix.conv = p_.vector(int64_t{mix.channels()} * 4, 0, 0.5f);
    mix.a = p_.vector(heads, -0.5f, 0.1f);
    mix.dt_bias = p_.vector(heads, 0, 1);
    mix.norm = norm(mix.d_head);
    add_layer(mix, values, {3, mix.channels(), heads, mix.d_head, mix.d_head},
              {{p_.matrix(DType::Q8_0, kWidth, mix.channels()), kNone, mix.qkv},
               {p_.matrix(DType::Q8_0, kWidth, values), kNone, mix.z},
               {p_.matrix(DType::F32, kWidth, heads), kNone, mix.alpha},
               {p_.matrix(DType::F32, kWidth, heads), kNone, mix.beta}},
              out_type);
  }
};

class StateSpace : public RecurrentModel {
 public:
  explicit StateSpace(DType out_type) {
    op::Mamba2Mix mix{};
    mix.n_heads = 8;
    mix.d_head = 64;
    mix.n_groups = 1;
    mix.d_state = 128;
    mix.in = p_.buffer(mix.width());
    mix.conv = p_.vector(int64_t{mix.channels()} * 4, 0, 0.5f);
    mix.conv_bias = p_.vector(mix.channels(), 0, 0.2f);
    mix.a = p_.vector(mix.n_heads, -0.5f, 0.1f);
    mix.d = p_.vector(mix.n_heads, 0, 1);
    mix.dt_bias = p_.vector(mix.n_heads, 0, 1);
    mix.norm = norm(mix.d_inner());
    add_layer(mix, mix.d_inner(), {3, mix.channels(), mix.n_heads, mix.d_state, mix.d_head, mix.n_heads},
              {{p_.matrix(DType::Q8_0, kWidth, mix.width()), kNone, mix.in}}, out_type);
  }
};

// Heads of 128; a group of 512 columns.
std::vector<std::unique_ptr<RecurrentModel>> models_with(DType out_type) {
  std::vector<std::unique_ptr<RecurrentModel>> all;
  all.push_back(std::make_unique<DeltaRule>(out_type));
  all.push_back(std::make_unique<StateSpace>(out_type));
  return all;
}

TEST(CudaRecurrence, LogitsAreThoseOfTheOracle) {
  const std::vector<int32_t> tokens = script_tokens(1, 0, 20, kVocab);
  for (const DType type : {DType::Q5_K, DType::F16}) {
    for (const auto& model : models_with(type)) {
      const auto oracle = model->compile(reference::compile, true), exact = model->compile(cuda::compile, true),
                 fast = model->compile(cuda::compile, false);
      const std::vector<float> expected = feed_alone(*oracle, tokens, {20});
      for (const std::vector<int>& lengths : {std::vector<int>{2, 16}, {17, 1}}) {
        EXPECT_LE(max_difference(expected, feed_alone(*exact, tokens, lengths)), kExactLimit);
        EXPECT_LE(mean_divergence(expected, feed_alone(*fast, tokens, lengths), kVocab), kFastDivergence);
      }
    }
  }
}

void expect_rows_of_their_own(const RecurrentModel& model, bool exact) {
  const std::vector<int32_t> tokens = script_tokens(2, 0, 9, kVocab);
  const std::span<const int32_t> all(tokens);
  const auto executable = model.compile(cuda::compile, exact);
  const AdapterSet adapted{{{model.adapter(*executable), 1.0f}}};
  const std::vector<float> alone = feed_alone(*executable, all, {1});
  EXPECT_EQ(feed_alone(*executable, all, {3}), alone);
  EXPECT_EQ(feed_alone(*executable, all, {9}), alone);

  Sequence mine = new_sequence(*executable), other = new_sequence(*executable);
  const std::vector<std::vector<float>> beside =
      step(*executable, {{&other, all.first(2), &adapted}, {&mine, all.first(5), nullptr}});
  EXPECT_EQ(max_difference(beside[1], std::span(alone).first(5 * kVocab)), 0.0f);
  EXPECT_GT(max_difference(beside[0], std::span(alone).first(2 * kVocab)), 0.01f);
}

// One row, a few and many take different products; beside a row with adapters another launch finishes the norm.
TEST(CudaRecurrence, ARowsBitsAreItsOwn) {
  for (const DType type : {DType::Q5_K, DType::F16}) {
    for (const auto& model : models_with(type)) {
      for (const bool exact : {false, true}) expect_rows_of_their_own(*model, exact);
    }
  }
}

// Launches of the recurrence in a decode step, which a profile counts by themselves.
int recurrence_launches(const RecurrentModel& model, bool exact) {
  const auto executable = model.compile(cuda::compile, exact);
  Sequence sequence = new_sequence(*executable);
  const auto slice = sequence.begin(1);
  EXPECT_TRUE(slice);
  const auto times = executable->profile({{3}, {*slice}, {0}}, 1);
  EXPECT_TRUE(times) << times.error().message;
  int n = 0;
  for (const FamilyTime& family : *times) {
    if (family.name == "delta rule" || family.name == "state space") n += family.n_launches;
  }
  return n;
}

// Where the product cannot divide by the rms of its input, one more launch does.
TEST(CudaRecurrence, AQuantisedProductTakesTheNormOver) {
  for (const auto& model : models_with(DType::Q5_K)) {
    EXPECT_EQ(recurrence_launches(*model, false), 1);
    EXPECT_EQ(recurrence_launches(*model, true), 2);
  }
  for (const auto& model : models_with(DType::F16)) EXPECT_EQ(recurrence_launches(*model, false), 2);
}

}  // namespace
}  // namespace chimere

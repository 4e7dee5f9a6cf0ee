// exactness_test.cpp  The numbers contract on a whole hybrid model: equal to the last bit, not nearly.
//
// The models are random, with weights in several quantised types and 8-bit activations. One has all that a qwen35moe
// has: Gated DeltaNet and gated attention layers, each followed by experts with a shared one. The other has what its
// relatives have: Mamba-2 and Mamba-1, attention over a window with sinks, latent experts behind a sigmoid router.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "backend/cpu/cpu_features.h"
#include "models/program_for_test.h"

namespace chimere {
namespace {

constexpr int kVocab = 97;

enum class Kind { delta_net, mamba };

class HybridForTest {
 public:
  explicit HybridForTest(Kind kind) : p_(kVocab) {
    p_.program.d_model = kWidth;
    x_ = p_.input(kWidth, 1.0f, DType::Q6_K);
    if (kind == Kind::delta_net) {
      add_delta_net_layers();
    } else {
      add_mamba_layers();
    }
    p_.program.ops.push_back(op::LmHead{x_, norm(), 1e-6f, p_.matrix(DType::Q6_K, kWidth, kVocab)});
  }

  ExecutablePtr compile(int n_threads, KvFormat kv = {}) const {
    LoadOptions options;
    options.kv = kv;
    options.max_rows = 256;
    options.n_threads = n_threads;
    return compiled(cpu::compile(p_.program, options));
  }

 private:
  static constexpr int kWidth = 256;

  void add_delta_net_layers() {
    add_delta_net(DType::IQ3_S, false);
    add_experts();
    add_attention();
    add_experts();
    add_delta_net(DType::Q4_K, true);
    p_.program.ops.push_back(op::DenseFfn{x_, norm(), 1e-6f, p_.matrix(DType::Q5_K, kWidth, 96),
                                          p_.matrix(DType::Q5_K, kWidth, 96), p_.matrix(DType::Q4_0, 96, kWidth)});
  }

  void add_mamba_layers() {
    add_mamba2(DType::Q5_0, 1);
    add_latent_experts();
    add_attention(40);
    add_mamba1(DType::Q8_0);
    add_mamba2(DType::IQ4_NL, 2);
    p_.program.ops.push_back(op::DenseFfn{x_, norm(), 1e-6f, kNone, p_.matrix(DType::Q4_1, kWidth, 96),
                                          p_.matrix(DType::Q5_0, 96, kWidth), op::Activation::relu2, 0.5f});
  }

  VectorId norm() { return p_.vector(kWidth, 1.0f, 0.2f); }

  void add_delta_net(DType type, bool tiled) {
    op::GdnMix o{};
    o.n_key_heads = 2;
    o.n_value_heads = 4;
    o.d_head = 32;
    o.tiled_heads = tiled;
    o.eps = 1e-6f;
    const int heads = o.n_value_heads, values = heads * o.d_head, kernel = 4;
    o.qkv = p_.buffer(o.channels());
    o.z = p_.buffer(values);
    o.alpha = p_.buffer(heads);
    o.beta = p_.buffer(heads);
    o.out = p_.buffer(values);
    o.conv = p_.vector(int64_t{o.channels()} * kernel, 0, 0.5f);
    o.a = p_.vector(heads, -0.5f, 0.1f);
    o.dt_bias = p_.vector(heads, 0, 1);
    o.norm = p_.vector(o.d_head, 1.0f, 0.2f);
    o.recurrent_layer = static_cast<int>(p_.program.recurrent_layers.size());
    p_.program.recurrent_layers.push_back({kernel - 1, o.channels(), heads, o.d_head, o.d_head});
    p_.program.ops.push_back(op::NormMatmul{x_,
                                            norm(),
                                            1e-6f,
                                            {{p_.matrix(type, kWidth, o.channels()), kNone, o.qkv},
                                             {p_.matrix(type, kWidth, values), kNone, o.z},
                                             {p_.matrix(DType::F32, kWidth, heads), kNone, o.alpha},
                                             {p_.matrix(DType::Q8_0, kWidth, heads), kNone, o.beta}}});
    p_.program.ops.push_back(o);
    p_.program.ops.push_back(op::MatmulAdd{o.out, p_.matrix(DType::Q8_0, values, kWidth), kNone, x_});
  }

  void add_mamba2(DType type, int n_groups) {
    op::Mamba2Mix o{};
    o.n_heads = 6;
    o.d_head = 32;
    o.n_groups = n_groups;
    o.d_state = 24;
    o.eps = 1e-6f;
    const int kernel = 4;
    o.in = p_.buffer(o.width());
    o.out = p_.buffer(o.d_inner());
    o.conv = p_.vector(int64_t{o.channels()} * kernel, 0, 0.5f);
    o.conv_bias = p_.vector(o.channels(), 0, 0.5f);
    o.a = p_.vector(o.n_heads, -0.5f, 0.1f);
    o.d = p_.vector(o.n_heads, 1.0f, 0.2f);
    o.dt_bias = p_.vector(o.n_heads, 0, 1);
    o.norm = p_.vector(o.d_inner(), 1.0f, 0.2f);
    o.recurrent_layer = static_cast<int>(p_.program.recurrent_layers.size());
    p_.program.recurrent_layers.push_back({kernel - 1, o.channels(), o.n_heads, o.d_state, o.d_head, o.n_heads});
    p_.program.ops.push_back(op::NormMatmul{x_, norm(), 1e-6f, {{p_.matrix(type, kWidth, o.width()), kNone, o.in}}});
    p_.program.ops.push_back(o);
    p_.program.ops.push_back(op::MatmulAdd{o.out, p_.matrix(DType::Q4_0, o.d_inner(), kWidth), kNone, x_, 0.5f});
  }

  void add_mamba1(DType type) {
    const int channels = 160, d_state = 16, rank = 32, kernel = 3;
    op::CausalConv conv{};
    conv.in = p_.buffer(2 * channels);
    conv.conv = p_.vector(int64_t{channels} * kernel, 0, 0.5f);
    conv.conv_bias = p_.vector(channels, 0, 0.5f);
    conv.channels = channels;
    conv.out = p_.buffer(channels);
    op::SelectiveScan o{};
    o.x = conv.out;
    const BufferId low = p_.buffer(rank);
    o.dt = p_.buffer(channels);
    o.b = p_.buffer(d_state);
    o.c = p_.buffer(d_state);
    o.z = conv.in;
    o.z_at = channels;
    o.a = p_.vector(int64_t{channels} * d_state, -0.5f, 0.1f);
    o.d = p_.vector(channels, 1.0f, 0.2f);
    o.b_norm = p_.vector(d_state, 1.0f, 0.2f);
    o.c_norm = p_.vector(d_state, 1.0f, 0.2f);
    o.eps = 1e-6f;
    o.channels = channels;
    o.d_state = d_state;
    o.out = p_.buffer(channels);
    o.recurrent_layer = conv.recurrent_layer = static_cast<int>(p_.program.recurrent_layers.size());
    p_.program.recurrent_layers.push_back({kernel - 1, channels, 1, d_state, channels, 2 * channels + d_state});
    auto& ops = p_.program.ops;
    ops.push_back(op::NormMatmul{x_, norm(), 1e-6f, {{p_.matrix(type, kWidth, 2 * channels), kNone, conv.in}}});
    ops.push_back(conv);
    ops.push_back(op::NormMatmul{conv.out,
                                 kNone,
                                 0,
                                 {{p_.matrix(type, channels, rank), kNone, low},
                                  {p_.matrix(type, channels, d_state), kNone, o.b},
                                  {p_.matrix(type, channels, d_state), kNone, o.c}}});
    ops.push_back(op::NormMatmul{
        low, p_.vector(rank, 1.0f, 0.2f), 1e-6f, {{p_.matrix(type, rank, channels), p_.vector(channels, 0, 1), o.dt}}});
    ops.push_back(o);
    ops.push_back(op::MatmulAdd{o.out, p_.matrix(DType::Q8_0, channels, kWidth), kNone, x_});
  }

  void add_latent_experts() {
    op::MoeFfn o{};
    o.x = x_;
    o.norm = norm();
    o.eps = 1e-6f;
    o.n_experts = 13;
    o.n_used = 3;
    o.n_least = 1;
    o.entropy_low = 0.5f;
    o.router = p_.matrix(DType::F32, kWidth, o.n_experts, 1, 0.2f);
    o.gate = kNone;
    o.up = p_.matrix(DType::Q5_0, 96, 64, o.n_experts);
    o.down = p_.matrix(DType::Q4_1, 64, 96, o.n_experts);
    o.activation = op::Activation::relu2;
    o.gating = op::Gating::sigmoid;
    o.weight_scale = 2.5f;
    o.selection_bias = p_.vector(o.n_experts, 0, 0.2f);
    o.latent_down = p_.matrix(DType::Q8_0, kWidth, 96);
    o.latent_up = p_.matrix(DType::Q8_0, 96, kWidth);
    o.shared_up = p_.matrix(DType::Q8_0, kWidth, 96);
    o.shared_down = p_.matrix(DType::Q8_0, 96, kWidth);
    p_.program.ops.push_back(o);
  }

  void add_attention(int window = 0) {
    op::Attention o{};
    o.n_heads = 6;
    o.n_kv_heads = 2;
    o.head_dim_k = o.head_dim_v = 32;
    o.gated = true;
    o.q = p_.buffer(o.n_heads * 2 * 32);
    o.k = p_.buffer(o.n_kv_heads * 32);
    o.v = p_.buffer(o.n_kv_heads * 32);
    o.out = p_.buffer(o.n_heads * 32);
    o.q_norm = p_.vector(32, 1.0f, 0.2f);
    o.k_norm = p_.vector(32, 1.0f, 0.2f);
    o.eps = 1e-6f;
    o.scale = 1.0f / std::sqrt(32.0f);
    Rope rope;
    for (int k = 0; k < 8; ++k) rope.inv_freq.push_back(std::pow(1e4f, -static_cast<float>(k) / 8));
    p_.program.ropes.push_back(rope);
    o.rope = 0;
    o.window = window;
    if (window > 0) o.sinks = p_.vector(o.n_heads, 0, 1);
    o.kv_layer = 0;
    p_.program.kv_layers.push_back({o.n_kv_heads, 32, 32});
    p_.program.ops.push_back(op::NormMatmul{x_,
                                            norm(),
                                            1e-6f,
                                            {{p_.matrix(DType::Q4_K, kWidth, o.n_heads * 64), kNone, o.q},
                                             {p_.matrix(DType::Q6_K, kWidth, 64), kNone, o.k},
                                             {p_.matrix(DType::Q8_0, kWidth, 64), p_.vector(64, 0, 1), o.v}}});
    p_.program.ops.push_back(o);
    p_.program.ops.push_back(op::MatmulAdd{o.out, p_.matrix(DType::Q4_0, o.n_heads * 32, kWidth), kNone, x_});
  }

  void add_experts() {
    op::MoeFfn o{};
    o.x = x_;
    o.norm = norm();
    o.eps = 1e-6f;
    o.n_experts = 13;
    o.n_used = 3;
    o.router = p_.matrix(DType::F32, kWidth, o.n_experts, 1, 0.2f);
    o.gate = p_.matrix(DType::IQ3_S, kWidth, 64, o.n_experts);
    o.up = p_.matrix(DType::IQ3_S, kWidth, 64, o.n_experts);
    o.down = p_.matrix(DType::IQ4_NL, 64, kWidth, o.n_experts);
    o.shared_gate = p_.matrix(DType::Q8_0, kWidth, 96);
    o.shared_up = p_.matrix(DType::Q8_0, kWidth, 96);
    o.shared_down = p_.matrix(DType::Q8_0, 96, kWidth);
    o.shared_router = p_.vector(kWidth, 0, 0.1f);
    p_.program.ops.push_back(o);
  }

  ProgramForTest p_;
  BufferId x_;
};

const HybridForTest& hybrid(Kind kind = Kind::delta_net) {
  static const HybridForTest delta_net(Kind::delta_net), mamba(Kind::mamba);
  return kind == Kind::delta_net ? delta_net : mamba;
}

// Equal bits; says which position and logit is the first that differs.
testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " logits";
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return testing::AssertionFailure() << "row " << i / kVocab << " is not finite";
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return testing::AssertionFailure() << "row " << i / kVocab << " logit " << i % kVocab << ": " << a[i] << " and "
                                         << b[i];
    }
  }
  return testing::AssertionSuccess();
}

std::vector<int32_t> text(int begin, int n, int sequence = 0) { return script_tokens(sequence, begin, n, kVocab); }

// Logits of positions [begin, end) when they are fed in slices of n.
std::vector<float> run_in_slices(Executable& e, Sequence& s, int begin, int end, int n) {
  std::vector<float> out;
  for (int at = begin; at < end; at += n) {
    const std::vector<float> logits = run_alone(e, s, text(at, std::min(n, end - at)));
    out.insert(out.end(), logits.begin(), logits.end());
  }
  return out;
}

std::span<const float> rows(const std::vector<float>& logits, int begin, int n) {
  return std::span(logits).subspan(static_cast<size_t>(begin) * kVocab, static_cast<size_t>(n) * kVocab);
}

struct Variant {
  Kind kind;
  KvFormat kv;
};

class Exactness : public testing::TestWithParam<Variant> {
 protected:
  static ExecutablePtr compile(int n_threads) { return hybrid(GetParam().kind).compile(n_threads, GetParam().kv); }
};

// (a) Decode class: neither the number of tokens in a slice nor the threads change a bit. From one page into the next,
// and across 256 tokens of context, from where on attention joins pieces of it.
TEST_P(Exactness, DecodeSlicesGiveTheBitsOfSingleTokens) {
  for (const auto& [prompt, end] : {std::pair{41, 89}, {235, 268}}) {
    const ExecutablePtr one = compile(1);
    ASSERT_TRUE(one);
    Sequence straight = new_sequence(*one);
    const std::vector<float> first = run_alone(*one, straight, text(0, prompt));
    const std::vector<float> expected = run_in_slices(*one, straight, prompt, end, 1);
    for (int n_threads : {1, 2, 3}) {
      const ExecutablePtr e = compile(n_threads);
      ASSERT_TRUE(e);
      for (int n = n_threads == 1 ? 2 : 1; n <= kDecodeTokens; n += n_threads == 1 ? 1 : 5) {
        Sequence s = new_sequence(*e);
        EXPECT_TRUE(same_bits(run_alone(*e, s, text(0, prompt)), first)) << n_threads << " threads";
        EXPECT_TRUE(same_bits(run_in_slices(*e, s, prompt, end, n), expected))
            << "slices of " << n << " from " << prompt << ", " << n_threads << " threads";
      }
    }
  }
}

// The kernels of every instruction set keep the contract.
TEST_P(Exactness, DecodeSlicesOnEveryInstructionSet) {
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa_for_testing(isa);
    Sequence straight = new_sequence(*e);
    const std::vector<float> expected = run_in_slices(*e, straight, 0, 21, 1);
    for (int n : {2, 7, 16}) {
      Sequence s = new_sequence(*e);
      EXPECT_TRUE(same_bits(run_in_slices(*e, s, 0, 21, n), expected)) << cpu::name(isa) << ", slices of " << n;
    }
  }
  cpu::set_isa_for_testing(cpu::detect_isa());
}

// (a) and (b): a sequence alone, and among others that prefill and decode in the same batches.
TEST_P(Exactness, CompanyChangesNothing) {
  const std::vector<int> cuts = {70, 1, 1, 16, 3, 58, 1, 17, 2};
  const ExecutablePtr one = compile(1);
  ASSERT_TRUE(one);
  std::vector<float> expected;
  Sequence straight = new_sequence(*one);
  for (int n : cuts) {
    const std::vector<float> logits = run_alone(*one, straight, text(straight.length(), n));
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  for (int n_threads : {1, 2, 3}) {
    const ExecutablePtr e = compile(n_threads);
    ASSERT_TRUE(e);
    for (int place : {0, 1, 2}) {
      std::vector<float> found;
      Sequence s = new_sequence(*e), other = new_sequence(*e), third = new_sequence(*e);
      for (size_t i = 0; i < cuts.size(); ++i) {
        std::vector<Part> parts = {{&other, text(other.length(), i % 2 == 0 ? 1 : 37, 1)},
                                   {&third, text(third.length(), i % 3 == 0 ? 16 : 2, 2)}};
        parts.insert(parts.begin() + place, {&s, text(s.length(), cuts[i])});
        run_batch(*e, parts);
        found.insert(found.end(), parts[place].logits.begin(), parts[place].logits.end());
      }
      EXPECT_TRUE(same_bits(found, expected)) << "place " << place << ", " << n_threads << " threads";
    }
  }
}

// A rejected draft of up to 8 tokens leaves no trace, wherever it happened.
TEST_P(Exactness, RollbackEqualsTheRunThatNeverWentThere) {
  constexpr int kPrompt = 50, kSteps = 34, kAhead = 5, kWindow = 8;
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  Sequence straight = new_sequence(*e);
  run_alone(*e, straight, text(0, kPrompt));
  const std::vector<float> expected = run_in_slices(*e, straight, kPrompt, kPrompt + kSteps + kAhead, 1);

  Sequence s = new_sequence(*e, kWindow);
  run_alone(*e, s, text(0, kPrompt));
  EXPECT_EQ(s.rollback_reach(), 0) << "nothing was decoded yet";
  EXPECT_FALSE(s.rollback(1));
  for (int at = 0; at < kSteps; ++at) {
    SCOPED_TRACE("at " + std::to_string(at));
    for (int draft : {1 + at % kWindow, kWindow}) {
      // The first `right` tokens of the draft are those of the text, the rest are not.
      const int right = (at + draft) % draft;
      std::vector<int32_t> tokens = text(kPrompt + at, draft);
      for (int i = right; i < draft; ++i) tokens[i] = (tokens[i] + 1 + i) % kVocab;
      const std::vector<float> verified = run_alone(*e, s, tokens);
      ASSERT_TRUE(same_bits(rows(verified, 0, right), rows(expected, at, right)));
      ASSERT_GE(s.rollback_reach(), draft);
      ASSERT_TRUE(s.rollback(draft - right));
      ASSERT_EQ(s.length(), kPrompt + at + right);
      const int ahead = kAhead - right;
      if (ahead > 0) {
        ASSERT_TRUE(same_bits(run_in_slices(*e, s, kPrompt + at + right, kPrompt + at + kAhead, 1),
                              rows(expected, at + right, ahead)));
        ASSERT_TRUE(s.rollback(kAhead));
      } else {
        ASSERT_TRUE(s.rollback(right));
      }
      ASSERT_EQ(s.length(), kPrompt + at);
    }
    ASSERT_TRUE(same_bits(run_alone(*e, s, text(kPrompt + at, 1)), rows(expected, at, 1)));
  }
  const auto too_far = s.rollback(s.rollback_reach() + 1);
  ASSERT_FALSE(too_far);
}

TEST_P(Exactness, EverySnapshotContinuesAsTheStraightRun) {
  constexpr int kPrompt = 50, kSteps = 30, kAhead = 5;
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  Sequence straight = new_sequence(*e);
  run_alone(*e, straight, text(0, kPrompt));
  std::vector<Snapshot> kept;
  std::vector<float> expected;
  for (int at = 0; at < kSteps + kAhead; ++at) {
    auto snapshot = straight.snapshot();
    ASSERT_TRUE(snapshot);
    kept.push_back(*snapshot);
    const std::vector<float> logits = run_alone(*e, straight, text(kPrompt + at, 1));
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  Sequence again = new_sequence(*e, 8);
  for (int at = kSteps - 1; at >= 0; --at) {
    ASSERT_TRUE(again.restore(kept[at]));
    ASSERT_EQ(again.length(), kPrompt + at);
    ASSERT_TRUE(same_bits(run_in_slices(*e, again, kPrompt + at, kPrompt + at + kAhead, 1), rows(expected, at, kAhead)))
        << "at " << at;
    // A rollback after a restore goes as far as what was decoded since.
    ASSERT_EQ(again.rollback_reach(), kAhead);
    ASSERT_TRUE(again.rollback(kAhead - 1));
    ASSERT_TRUE(same_bits(run_alone(*e, again, text(kPrompt + at + 1, 4)), rows(expected, at + 1, 4))) << "at " << at;
  }
}

// Two sequences that start from one snapshot write their own pages.
TEST_P(Exactness, SharedSnapshotsDoNotAlias) {
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  for (int length : {37, 64, 100}) {
    Sequence first = new_sequence(*e);
    run_alone(*e, first, text(0, length));
    auto snapshot = first.snapshot();
    ASSERT_TRUE(snapshot);
    Sequence a = new_sequence(*e), b = new_sequence(*e);
    ASSERT_TRUE(a.restore(*snapshot));
    ASSERT_TRUE(b.restore(*snapshot));
    // All three go on with texts of their own, in turns.
    std::vector<float> of_first, of_a, of_b;
    for (int i = 0; i < 6; ++i) {
      for (auto [s, out, script] : {std::tuple{&first, &of_first, 0}, {&a, &of_a, 1}, {&b, &of_b, 2}}) {
        const std::vector<float> logits = run_alone(*e, *s, text(length + i, 1, script));
        out->insert(out->end(), logits.begin(), logits.end());
      }
    }
    for (auto [out, script] : {std::pair{&of_first, 0}, {&of_a, 1}, {&of_b, 2}}) {
      Sequence alone = new_sequence(*e);
      run_alone(*e, alone, text(0, length));
      std::vector<float> expected;
      for (int i = 0; i < 6; ++i) {
        const std::vector<float> logits = run_alone(*e, alone, text(length + i, 1, script));
        expected.insert(expected.end(), logits.begin(), logits.end());
      }
      EXPECT_TRUE(same_bits(*out, expected)) << "length " << length << ", script " << script;
    }
    // Nor did the snapshot change.
    Sequence late = new_sequence(*e);
    ASSERT_TRUE(late.restore(*snapshot));
    EXPECT_TRUE(same_bits(run_alone(*e, late, text(length, 1, 0)), rows(of_first, 0, 1)));
  }
}

TEST_P(Exactness, SerializedSnapshotsContinueExactly) {
  const ExecutablePtr e = compile(2), other = compile(3);
  ASSERT_TRUE(e && other);
  for (int length : {0, 1, 63, 64, 65, 130}) {
    Sequence s = new_sequence(*e);
    if (length > 0) run_alone(*e, s, text(0, length));
    auto snapshot = s.snapshot();
    ASSERT_TRUE(snapshot);
    auto bytes = serialize(*snapshot, *e, 77);
    ASSERT_TRUE(bytes);
    auto parsed = parse_snapshot(*bytes, *other, 77);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*serialize(*parsed, *other, 77), *bytes);
    Sequence t = new_sequence(*other);
    ASSERT_TRUE(t.restore(*parsed));
    EXPECT_EQ(t.length(), length);
    EXPECT_TRUE(same_bits(run_alone(*other, t, text(length, 9)), run_alone(*e, s, text(length, 9)))) << length;
    const auto foreign = parse_snapshot(*bytes, *e, 78);
    ASSERT_FALSE(foreign);
    EXPECT_NE(foreign.error().message.find("key"), std::string::npos) << foreign.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Kv, Exactness,
                         testing::Values(Variant{Kind::delta_net, {DType::F16, DType::F16, false}},
                                         Variant{Kind::delta_net, {DType::Q8_0, DType::Q4_0, true}},
                                         Variant{Kind::mamba, {DType::F16, DType::F16, false}}),
                         [](const auto& info) {
                           return std::string(info.param.kind == Kind::mamba ? "mamba_" : "delta_net_") +
                                  std::string(name(info.param.kv.k));
                         });

TEST(SnapshotFile, RefusesDamage) {
  const ExecutablePtr e = hybrid().compile(1);
  ASSERT_TRUE(e);
  Sequence s = new_sequence(*e);
  run_alone(*e, s, text(0, 70));
  auto snapshot = s.snapshot();
  ASSERT_TRUE(snapshot);
  const std::vector<std::byte> good = *serialize(*snapshot, *e, 5);
  ASSERT_TRUE(parse_snapshot(good, *e, 5));
  const auto refused = [&](std::span<const std::byte> bytes) {
    const auto parsed = parse_snapshot(bytes, *e, 5);
    return !parsed && parsed.error().message.find("snapshot: ") == 0;
  };
  std::vector<std::byte> bad = good;
  for (size_t i = 0; i < 48; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bad[i] ^= std::byte{1} << bit;
      ASSERT_TRUE(refused(bad)) << "header byte " << i << " bit " << bit;
      bad[i] = good[i];
    }
  }
  for (size_t i = 48; i < good.size(); i += 1 + (i * 2654435761u) % 997) {
    const std::byte flip{static_cast<uint8_t>(1u << (i % 8))};
    bad[i] ^= flip;
    ASSERT_TRUE(refused(bad)) << "byte " << i << " of " << good.size();
    bad[i] = good[i];
  }
  for (size_t n = 0; n < good.size(); n += n < 64 ? 1 : 1009) ASSERT_TRUE(refused(std::span(good).first(n))) << n;
  ASSERT_TRUE(refused(std::span(good).first(good.size() - 1)));
  bad.push_back(std::byte{0});
  ASSERT_TRUE(refused(bad)) << "one byte too many";

  // Of another cache format, under the same key.
  const ExecutablePtr q8 = hybrid().compile(1, {DType::Q8_0, DType::Q8_0, false});
  ASSERT_TRUE(q8);
  EXPECT_FALSE(parse_snapshot(good, *q8, 5));
  Sequence t = new_sequence(*q8);
  EXPECT_FALSE(t.restore(*snapshot)) << "its pages have another size";
  EXPECT_EQ(t.length(), 0);
}

}  // namespace
}  // namespace chimere

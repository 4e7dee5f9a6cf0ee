#include "models/mamba_layers.h"

#include <numeric>

namespace chimere::models {
namespace {

constexpr int64_t kMaxInner = 1 << 22;

}  // namespace

Result<Mamba2> read_mamba2(const gguf::Metadata& m, const Config& c) {
  TRY_ASSIGN(const int64_t kernel, m.get_int(c.key("ssm.conv_kernel"), 2, 64));
  TRY_ASSIGN(const int64_t inner, m.get_int(c.key("ssm.inner_size"), 1, kMaxInner));
  TRY_ASSIGN(const int64_t state, m.get_int(c.key("ssm.state_size"), 1, 4096));
  TRY_ASSIGN(const int64_t heads, m.get_int(c.key("ssm.time_step_rank"), 1, 4096));
  TRY_ASSIGN(const int64_t groups, m.get_int(c.key("ssm.group_count"), 1, 1024));
  if (inner % heads != 0) {
    return Error{Code::corrupt, c.key("ssm.inner_size") + ": " + std::to_string(inner) +
                                    " channels are no multiple of " + std::to_string(heads) + " heads"};
  }
  if (heads % groups != 0) {
    return Error{Code::corrupt, c.key("ssm.time_step_rank") + ": " + std::to_string(heads) +
                                    " heads are no multiple of " + std::to_string(groups) + " groups"};
  }
  return Mamba2{static_cast<int>(kernel), static_cast<int>(heads), static_cast<int>(inner / heads),
                static_cast<int>(groups), static_cast<int>(state)};
}

Mamba2Buffers mamba2_buffers(Binder& b, const Mamba2& s) {
  return {b.buffer("zxbcdt", s.projected()), b.buffer("mamba", s.d_inner())};
}

op::Projection mamba2_projection(Binder& b, const Config& c, const Mamba2& s, int layer, const Mamba2Buffers& buffers) {
  const auto d = static_cast<uint64_t>(c.d_model);
  return {.weight = b.matrix(block(layer, "ssm_in.weight"), {d, s.projected()}), .out = buffers.in};
}

void add_mamba2_mix(Binder& b, const Config& c, const Mamba2& s, int layer, const Trunk& t,
                    const Mamba2Buffers& buffers, float scale, bool norm_optional) {
  const std::string norm = block(layer, "ssm_norm.weight");
  b.add(op::Mamba2Mix{.in = buffers.in,
                      .conv = b.vector(block(layer, "ssm_conv1d.weight"), s.channels() * s.kernel),
                      .conv_bias = b.vector_if_present(block(layer, "ssm_conv1d.bias"), s.channels()),
                      .a = b.vector(block(layer, "ssm_a"), s.n_heads),
                      .d = b.vector(block(layer, "ssm_d"), s.n_heads),
                      .dt_bias = b.vector(block(layer, "ssm_dt.bias"), s.n_heads),
                      .norm = norm_optional ? b.vector_if_present(norm, s.d_inner()) : b.vector(norm, s.d_inner()),
                      .eps = c.eps,
                      .n_heads = s.n_heads,
                      .d_head = s.d_head,
                      .n_groups = s.n_groups,
                      .d_state = s.d_state,
                      .recurrent_layer = b.recurrent_layer({.conv_width = s.kernel - 1,
                                                            .conv_channels = static_cast<int>(s.channels()),
                                                            .n_heads = s.n_heads,
                                                            .d_key = s.d_state,
                                                            .d_value = s.d_head,
                                                            .recorded_gates = s.n_heads}),
                      .out = buffers.out});
  b.add(
      op::MatmulAdd{.x = buffers.out,
                    .weight = b.matrix(block(layer, "ssm_out.weight"), {s.d_inner(), static_cast<uint64_t>(c.d_model)}),
                    .residual = t.x,
                    .scale = scale});
}

void add_mamba2(Binder& b, const Config& c, const Mamba2& s, int layer, const Trunk& t, const Mamba2Buffers& buffers,
                float scale) {
  op::NormMatmul in = mixer_input(b, c, layer, t);
  in.outs.push_back(mamba2_projection(b, c, s, layer, buffers));
  b.add(std::move(in));
  add_mamba2_mix(b, c, s, layer, t, buffers, scale, false);
}

Result<Mamba1> read_mamba1(const gguf::Metadata& m, const Config& c, Mamba1::Norms norms) {
  TRY_ASSIGN(const int64_t kernel, m.get_int(c.key("ssm.conv_kernel"), 2, 64));
  TRY_ASSIGN(const int64_t inner, m.get_int(c.key("ssm.inner_size"), 1, kMaxInner));
  TRY_ASSIGN(const int64_t state, m.get_int(c.key("ssm.state_size"), 1, 4096));
  TRY_ASSIGN(const int64_t rank, m.get_int(c.key("ssm.time_step_rank"), 1, kMaxInner));
  return Mamba1{static_cast<int>(kernel), static_cast<int>(inner), static_cast<int>(state), static_cast<int>(rank),
                norms};
}

Mamba1Buffers mamba1_buffers(Binder& b, const Mamba1& s) {
  const auto inner = static_cast<uint64_t>(s.d_inner), state = static_cast<uint64_t>(s.d_state);
  return {b.buffer("xz", 2 * inner), b.buffer("x_conv", inner), b.buffer("dt_low", s.dt_rank), b.buffer("b", state),
          b.buffer("c", state),      b.buffer("dt", inner),     b.buffer("mamba", inner)};
}

void add_mamba1(Binder& b, const Config& c, const Mamba1& s, int layer, const Trunk& t, const Mamba1Buffers& buffers) {
  const auto d = static_cast<uint64_t>(c.d_model), inner = static_cast<uint64_t>(s.d_inner);
  const auto rank = static_cast<uint64_t>(s.dt_rank), state = static_cast<uint64_t>(s.d_state);
  const auto norm = [&](const char* part, uint64_t n) {
    if (s.norms == Mamba1::Norms::none) return kNone;
    return s.norms == Mamba1::Norms::plain ? b.ones(n) : b.vector(block(layer, part), n);
  };
  // ssm_x holds the rows of dt, B and C one after the other.
  const auto part_of_x = [&](const char* part, uint64_t first, uint64_t n, BufferId out) {
    std::vector<uint64_t> rows(n);
    std::iota(rows.begin(), rows.end(), first);
    return op::Projection{
        .weight = b.gathered_rows(block(layer, "ssm_x.weight"), {inner, rank + 2 * state}, rows, block(layer, part)),
        .out = out};
  };
  op::NormMatmul in = mixer_input(b, c, layer, t);
  in.outs.push_back({.weight = b.matrix(block(layer, "ssm_in.weight"), {d, 2 * inner}), .out = buffers.xz});
  b.add(std::move(in));
  const int recurrent_layer = b.recurrent_layer({.conv_width = s.kernel - 1,
                                                 .conv_channels = s.d_inner,
                                                 .n_heads = 1,
                                                 .d_key = s.d_state,
                                                 .d_value = s.d_inner,
                                                 .recorded_gates = 2 * s.d_inner + s.d_state});
  b.add(op::CausalConv{.in = buffers.xz,
                       .conv = b.vector(block(layer, "ssm_conv1d.weight"), inner * s.kernel),
                       .conv_bias = b.vector_if_present(block(layer, "ssm_conv1d.bias"), inner),
                       .channels = s.d_inner,
                       .recurrent_layer = recurrent_layer,
                       .out = buffers.x});
  b.add(op::NormMatmul{
      .x = buffers.x,
      .outs = {part_of_x("ssm_x.dt", 0, rank, buffers.dt_low), part_of_x("ssm_x.b", rank, state, buffers.b),
               part_of_x("ssm_x.c", rank + state, state, buffers.c)}});
  b.add(op::NormMatmul{.x = buffers.dt_low,
                       .norm = norm("ssm_dt_norm.weight", rank),
                       .eps = c.eps,
                       .outs = {{.weight = b.matrix(block(layer, "ssm_dt.weight"), {rank, inner}),
                                 .bias = b.vector(block(layer, "ssm_dt.bias"), inner),
                                 .out = buffers.dt}}});
  b.add(op::SelectiveScan{.x = buffers.x,
                          .dt = buffers.dt,
                          .b = buffers.b,
                          .c = buffers.c,
                          .z = buffers.xz,
                          .z_at = s.d_inner,
                          .a = b.vector(block(layer, "ssm_a"), inner * state),
                          .d = b.vector(block(layer, "ssm_d"), inner),
                          .b_norm = norm("ssm_b_norm.weight", state),
                          .c_norm = norm("ssm_c_norm.weight", state),
                          .eps = c.eps,
                          .channels = s.d_inner,
                          .d_state = s.d_state,
                          .recurrent_layer = recurrent_layer,
                          .out = buffers.out});
  b.add(
      op::MatmulAdd{.x = buffers.out, .weight = b.matrix(block(layer, "ssm_out.weight"), {inner, d}), .residual = t.x});
}

}  // namespace chimere::models

// lowering.cpp  Each op as the launches of its class.
#include "backend/cuda/lowering.h"

#include <algorithm>
#include <string>

#include "backend/cuda/kernels/embed.h"
#include "backend/cuda/kernels/encoder.h"
#include "backend/cuda/kernels/rows.h"

namespace chimere::cuda {

bool PassShape::operator==(const PassShape& o) const {
  const BatchView &a = batch, &b = o.batch;
  const bool same_batch = a.tokens == b.tokens && a.slices == b.slices && a.row_slice == b.row_slice &&
                          a.row_pos == b.row_pos && a.logit_rows == b.logit_rows && a.n_rows == b.n_rows &&
                          a.n_slices == b.n_slices && a.n_logit_rows == b.n_logit_rows;
  return same_batch && pinned_tokens == o.pinned_tokens && is_decode == o.is_decode && logits == o.logits &&
         hidden == o.hidden && max_tokens == o.max_tokens && kv_bound == o.kv_bound && adapters == o.adapters;
}

Lowering::Lowering(const Program& program, const StateLayout& layout, const ProgramBinding& binding,
                   const DeviceInfo& device, bool exact, int max_rows, int decode_rows)
    : program_(program),
      layout_(layout),
      binding_(binding),
      replay_(layout),
      device_(device),
      exact_(exact),
      max_rows_(max_rows),
      max_prefill_slices_(std::clamp(max_rows / (kDecodeTokens + 1), 1, 64)),
      max_decode_rows_(decode_rows) {
  for (const Op& op : program_.ops) {
    const auto* moe = std::get_if<op::MoeFfn>(&op);
    if (moe && decode_kernels_take(*moe)) max_decode_rows_ = std::min(max_decode_rows_, kMoePairs / moe->n_used);
  }
  for (size_t i = 1; i < program_.ops.size(); ++i) {
    const auto* product = std::get_if<op::MatmulAdd>(&program_.ops[i]);
    const auto* delta = std::get_if<op::GdnMix>(&program_.ops[i - 1]);
    if (product && delta && product->x == delta->out && gdn_can_leave_norm(gdn_args(*delta))) {
      mixed_products_.push_back({delta->recurrent_layer, product, delta->d_head, delta->eps});
    }
    const auto* mamba = std::get_if<op::Mamba2Mix>(&program_.ops[i - 1]);
    if (product && mamba && product->x == mamba->out && mamba->norm != kNone &&
        mamba2_can_leave_norm(mamba2_args(*mamba))) {
      mixed_products_.push_back({mamba->recurrent_layer, product, mamba->d_inner() / mamba->n_groups, mamba->eps});
    }
  }
}

// A slice of kDecodeTokens goes through in one piece, or the op uses the kernels of the prefill class.
bool Lowering::decode_kernels_take(const op::MoeFfn& o) const {
  return o.latent_down == kNone && static_cast<bool>(moe_supported(moe_args(o, kDecodeTokens), kDecodeTokens));
}

PrefillInput Lowering::prefill_input(BufferId x, VectorId norm, float eps, int n_rows) const {
  return {buffers_.empty() ? nullptr : buffers_[x], shape_of(x).width, n_rows, nullptr, binding_.vector(norm), eps};
}

InputRows Lowering::decode_input(BufferId x, VectorId norm, float eps) const {
  return {buffers_.empty() ? nullptr : buffers_[x], binding_.vector(norm), eps, shape_of(x).width, nullptr, nullptr};
}

MatvecArgs Lowering::matvec_args(const InputRows& in, int n_rows, bool dependent) const {
  MatvecArgs args;
  args.in = in;
  args.n_rows = n_rows;
  args.exact = exact_;
  args.records = records_;
  args.dependent = dependent;
  args.n_sms = device_.n_sms;
  return args;
}

MoeArgs Lowering::moe_args(const op::MoeFfn& o, int n_rows) const {
  MoeArgs args;
  args.in = decode_input(o.x, o.norm, o.eps);
  args.residual = buffers_.empty() ? nullptr : buffers_[o.x];
  args.n_rows = n_rows;
  args.n_used = o.n_used;
  args.router = binding_.weight(o.router);
  args.router_bias = binding_.vector(o.router_bias);
  args.style = router_style(o);
  args.activation = o.activation;
  args.gate_bias = binding_.vector(o.gate_bias);
  args.up_bias = binding_.vector(o.up_bias);
  args.down_bias = binding_.vector(o.down_bias);
  args.scale = o.scale;
  args.shared_router = binding_.vector(o.shared_router);
  args.exact = exact_;
  args.scratch = moe_;
  args.n_sms = device_.n_sms;
  args.choose_only = is_hosted(o);
  if (args.choose_only) return args;
  args.gate = binding_.weight_or_none(o.gate);
  args.up = binding_.weight(o.up);
  args.down = binding_.weight(o.down);
  args.shared_gate = binding_.weight_or_none(o.shared_gate);
  args.shared_up = binding_.weight_or_none(o.shared_up);
  args.shared_down = binding_.weight_or_none(o.shared_down);
  return args;
}

RouterStyle Lowering::router_style(const op::MoeFfn& o) const {
  return {o.gating, o.renormalise, o.weight_scale, binding_.vector(o.selection_bias)};
}

PrefillMoe Lowering::prefill_moe_args(const op::MoeFfn& o, int n_rows) const {
  PrefillMoe args;
  args.host_mixture = binding_.hosted(o);
  args.host = host_;
  args.in = prefill_input(o.x, o.norm, o.eps, n_rows);
  args.router = binding_.weight(o.router);
  args.router_bias = binding_.vector(o.router_bias);
  args.style = router_style(o);
  args.experts = {binding_.weight_or_none(o.gate),
                  binding_.weight(o.up),
                  binding_.weight(o.down),
                  binding_.vector(o.gate_bias),
                  binding_.vector(o.up_bias),
                  binding_.vector(o.down_bias),
                  o.activation};
  args.n_used = o.n_used;
  args.shared.gate = binding_.weight_or_none(o.shared_gate);
  args.shared.up = binding_.weight_or_none(o.shared_up);
  args.shared.down = binding_.weight_or_none(o.shared_down);
  args.shared.activation = o.activation;
  args.latent_down = binding_.weight_or_none(o.latent_down);
  args.latent_up = binding_.weight_or_none(o.latent_up);
  args.scale = o.scale;
  args.shared_router = binding_.vector(o.shared_router);
  args.residual = buffers_.empty() ? nullptr : buffers_[o.x];
  args.exact = exact_;
  return args;
}

PrefillFfn Lowering::prefill_ffn_args(const op::DenseFfn& o, int n_rows) const {
  PrefillFfn args;
  args.in = prefill_input(o.x, o.norm, o.eps, n_rows);
  args.weights.gate = binding_.weight_or_none(o.gate);
  args.weights.up = binding_.weight(o.up);
  args.weights.down = binding_.weight(o.down);
  args.weights.activation = o.activation;
  args.scale = o.scale;
  args.residual = buffers_.empty() ? nullptr : buffers_[o.x];
  args.exact = exact_;
  return args;
}

AttentionArgs Lowering::attention_args(const op::Attention& o) const {
  AttentionArgs args;
  if (!buffers_.empty()) {
    args.q = buffers_[o.q];
    args.k = buffers_[o.k];
    args.v = buffers_[o.v];
    args.out = buffers_[o.out];
  }
  args.q_stride = shape_of(o.q).width;
  args.k_stride = shape_of(o.k).width;
  args.v_stride = shape_of(o.v).width;
  args.out_stride = shape_of(o.out).width;
  args.n_heads = o.n_heads;
  args.n_kv_heads = o.n_kv_heads;
  args.head_dim_k = o.head_dim_k;
  args.head_dim_v = o.head_dim_v;
  args.gated = o.gated;
  args.q_norm = binding_.vector(o.q_norm);
  args.k_norm = binding_.vector(o.k_norm);
  args.eps = o.eps;
  if (o.rope != kNone) {
    const Rope& rope = program_.ropes[o.rope];
    args.inv_freq = binding_.frequencies(o.rope);
    args.n_rot = rope.n_rot();
    args.rope_magnitude = rope.magnitude;
    args.rope_adjacent = rope.pairing == Rope::Pairing::adjacent;
  }
  args.scale = o.scale;
  args.sinks = binding_.vector(o.sinks);
  args.window = o.window;
  args.bidirectional = o.bidirectional;
  args.k_type = layout_.format().k;
  args.v_type = layout_.format().v;
  args.rotate = layout_.format().rotate;
  args.k_offset = layout_.k_offset(o.kv_layer, 0);
  args.v_offset = layout_.v_offset(o.kv_layer, 0);
  args.k_row_bytes = layout_.k_row_bytes(o.kv_layer);
  args.v_row_bytes = layout_.v_row_bytes(o.kv_layer);
  args.scratch = attention_;
  args.arrivals = arrivals_;
  args.max_decode_rows = max_decode_rows_;
  args.exact = exact_;
  return args;
}

GdnArgs Lowering::gdn_args(const op::GdnMix& o) const {
  GdnArgs args;
  if (!buffers_.empty()) {
    args.qkv = buffers_[o.qkv];
    args.z = buffers_[o.z];
    args.alpha = buffers_[o.alpha];
    args.beta = buffers_[o.beta];
    args.out = buffers_[o.out];
  }
  args.qkv_stride = shape_of(o.qkv).width;
  args.z_stride = shape_of(o.z).width;
  args.alpha_stride = shape_of(o.alpha).width;
  args.beta_stride = shape_of(o.beta).width;
  args.out_stride = shape_of(o.out).width;
  args.conv = binding_.vector(o.conv);
  args.a = binding_.vector(o.a);
  args.dt_bias = binding_.vector(o.dt_bias);
  args.norm = binding_.vector(o.norm);
  args.eps = o.eps;
  args.n_key_heads = o.n_key_heads;
  args.n_value_heads = o.n_value_heads;
  args.d_head = o.d_head;
  args.taps = layout_.recurrent()[o.recurrent_layer].conv_width + 1;
  args.tiled_heads = o.tiled_heads;
  args.conv_offset = layout_.conv_offset(o.recurrent_layer);
  args.matrix_offset = layout_.matrix_offset(o.recurrent_layer);
  args.replay_offset = replay_.offset[o.recurrent_layer];
  args.replay_stride = replay_.floats_per_token;
  args.arrivals = arrivals_;
  args.scratch = recurrent_;
  args.max_prefill_slices = max_prefill_slices_;
  args.exact = exact_;
  return args;
}

bool Lowering::leaves_norm(const PassShape& pass, const MixedProduct& p) const {
  return pass.is_decode && !pass.adapters && !exact_ && !binding_.weight(p.product->weight).is_float();
}

bool Lowering::leaves_norm(const PassShape& pass, int recurrent_layer) const {
  return std::any_of(mixed_products_.begin(), mixed_products_.end(), [&](const MixedProduct& p) {
    return p.recurrent_layer == recurrent_layer && leaves_norm(pass, p);
  });
}

Mamba2Args Lowering::mamba2_args(const op::Mamba2Mix& o) const {
  Mamba2Args args;
  if (!buffers_.empty()) {
    args.z = buffers_[o.in];
    args.xbc = args.z + o.d_inner();
    args.dt = args.xbc + o.channels();
    args.out = buffers_[o.out];
  }
  args.in_stride = shape_of(o.in).width;
  args.out_stride = shape_of(o.out).width;
  args.conv = binding_.vector(o.conv);
  args.conv_bias = binding_.vector(o.conv_bias);
  args.a = binding_.vector(o.a);
  args.d = binding_.vector(o.d);
  args.dt_bias = binding_.vector(o.dt_bias);
  args.norm = binding_.vector(o.norm);
  args.eps = o.eps;
  args.n_heads = o.n_heads;
  args.d_head = o.d_head;
  args.n_groups = o.n_groups;
  args.d_state = o.d_state;
  args.taps = layout_.recurrent()[o.recurrent_layer].conv_width + 1;
  args.conv_offset = layout_.conv_offset(o.recurrent_layer);
  args.matrix_offset = layout_.matrix_offset(o.recurrent_layer);
  args.replay_offset = replay_.offset[o.recurrent_layer];
  args.replay_stride = replay_.floats_per_token;
  args.arrivals = arrivals_;
  args.scratch = recurrent_;
  return args;
}

CausalConvArgs Lowering::conv_args(const op::CausalConv& o) const {
  CausalConvArgs args;
  args.in = buffers_[o.in];
  args.in_stride = shape_of(o.in).width;
  args.conv = binding_.vector(o.conv);
  args.bias = binding_.vector(o.conv_bias);
  args.channels = o.channels;
  args.taps = layout_.recurrent()[o.recurrent_layer].conv_width + 1;
  args.conv_offset = layout_.conv_offset(o.recurrent_layer);
  args.replay_offset = replay_.offset[o.recurrent_layer];
  args.replay_stride = replay_.floats_per_token;
  args.out = buffers_[o.out];
  args.out_stride = shape_of(o.out).width;
  return args;
}

SelectiveScanArgs Lowering::scan_args(const op::SelectiveScan& o) const {
  SelectiveScanArgs args;
  args.x = buffers_[o.x];
  args.x_stride = shape_of(o.x).width;
  args.dt = buffers_[o.dt];
  args.dt_stride = shape_of(o.dt).width;
  args.b = buffers_[o.b];
  args.b_stride = shape_of(o.b).width;
  args.c = buffers_[o.c];
  args.c_stride = shape_of(o.c).width;
  args.z = buffers_[o.z] + o.z_at;
  args.z_stride = shape_of(o.z).width;
  args.a = binding_.vector(o.a);
  args.d = binding_.vector(o.d);
  args.b_norm = binding_.vector(o.b_norm);
  args.c_norm = binding_.vector(o.c_norm);
  args.eps = o.eps;
  args.channels = o.channels;
  args.d_state = o.d_state;
  args.matrix_offset = layout_.matrix_offset(o.recurrent_layer);
  args.replay_offset = replay_.offset[o.recurrent_layer] + o.channels;  // behind what the conv records
  args.replay_stride = replay_.floats_per_token;
  args.out = buffers_[o.out];
  args.out_stride = shape_of(o.out).width;
  return args;
}

Lowering::Sizes Lowering::measure() const {
  Sizes sizes;
  const auto grow = [](uint64_t& size, uint64_t wanted) { size = std::max(size, wanted); };
  const auto product = [&](BufferId x, int n_rows) {
    PrefillProduct args;
    args.in = prefill_input(x, kNone, 0, n_rows);
    args.exact = exact_;
    grow(sizes.prefill, prefill_scratch_bytes(args));
    grow(sizes.records, matvec_records_bytes(shape_of(x).width, max_decode_rows_));
  };
  for (const Op& any : program_.ops) {
    if (const auto* o = std::get_if<op::NormMatmul>(&any)) product(o->x, max_rows_);
    if (const auto* o = std::get_if<op::MatmulAdd>(&any)) product(o->x, max_rows_);
    if (const auto* o = std::get_if<op::LmHead>(&any)) {
      grow(sizes.records, matvec_records_bytes(shape_of(o->x).width, head_rows()));
    }
    if (const auto* o = std::get_if<op::DenseFfn>(&any)) {
      const int d_ff = binding_.weight(o->up).rows;
      grow(sizes.prefill, prefill_scratch_bytes(prefill_ffn_args(*o, max_rows_)));
      grow(sizes.records, matvec_records_bytes(std::max(d_ff, shape_of(o->x).width), max_decode_rows_));
      grow(sizes.ffn_hidden, sizeof(float) * static_cast<uint64_t>(d_ff) * max_decode_rows_);
    }
    if (const auto* o = std::get_if<op::MoeFfn>(&any)) {
      // Tiles are larger for many rows: the most rows with small tiles can want more of them.
      const auto tile_rows = [&](int n) { return expert_tile_rows(n, o->n_used, o->n_experts, exact_); };
      int fewer = max_rows_;
      while (fewer > 1 && tile_rows(fewer) == tile_rows(max_rows_)) --fewer;
      for (int n : {max_rows_, fewer}) grow(sizes.prefill, prefill_scratch_bytes(prefill_moe_args(*o, n)));
      if (decode_kernels_take(*o)) {
        grow(sizes.moe, moe_scratch_bytes(moe_args(*o, max_decode_rows_), max_decode_rows_));
      }
      if (is_hosted(*o) && o->has_shared()) {
        const int d_ff = binding_.weight(o->shared_up).rows;
        grow(sizes.records, matvec_records_bytes(std::max(d_ff, shape_of(o->x).width), max_decode_rows_));
        grow(sizes.ffn_hidden, sizeof(float) * static_cast<uint64_t>(d_ff) * max_decode_rows_);
      }
    }
    if (const auto* o = std::get_if<op::Attention>(&any)) {
      const AttentionArgs args = attention_args(*o);
      grow(sizes.attention, sizeof(float) * attention_scratch_floats(args, max_rows_, max_decode_rows_));
      grow(sizes.arrivals, sizeof(int32_t) * attention_arrivals(args, max_rows_));
    }
    if (const auto* o = std::get_if<op::GdnMix>(&any)) {
      const GdnArgs args = gdn_args(*o);
      grow(sizes.recurrent, sizeof(float) * gdn_scratch_floats(args, max_rows_, max_prefill_slices_));
      grow(sizes.arrivals, sizeof(int32_t) * gdn_arrivals(args, max_rows_));
    }
    if (const auto* o = std::get_if<op::Mamba2Mix>(&any)) {
      const Mamba2Args args = mamba2_args(*o);
      grow(sizes.recurrent, sizeof(float) * mamba2_scratch_floats(args, max_decode_rows_));
      grow(sizes.arrivals, sizeof(int32_t) * mamba2_arrivals(args, max_rows_));
    }
  }
  return sizes;
}

uint64_t Lowering::working_bytes() const {
  const Sizes sizes = measure();
  uint64_t bytes = 0;
  const auto add = [&bytes](uint64_t piece) { bytes += DeviceArena::padded(piece); };
  for (const Buffer& b : program_.buffers) add(sizeof(float) * static_cast<uint64_t>(b.width) * max_rows_);
  for (uint64_t piece : {sizes.prefill, sizes.records, sizes.ffn_hidden, sizes.ffn_hidden, sizes.moe, sizes.attention,
                         sizes.recurrent, sizes.arrivals}) {
    add(piece);
  }
  add(sizeof(float) * n_logits() * head_rows());
  add(sizeof(float) * static_cast<uint64_t>(program_.d_model) * head_rows());
  return bytes;
}

Status Lowering::allocate(Ledger& ledger, const Stream& stream, HostExperts* host) {
  host_ = host;
  const Sizes sizes = measure();
  TRY_ASSIGN(arena_, DeviceArena::create(ledger, Purpose::scratch, working_bytes()));
  std::vector<float*> buffers;
  for (const Buffer& b : program_.buffers) {
    buffers.push_back(arena_.take_array<float>(static_cast<uint64_t>(b.width) * max_rows_));
  }
  buffers_ = std::move(buffers);
  prefill_ = {arena_.take(sizes.prefill), sizes.prefill};
  records_ = arena_.take_array<uint8_t>(sizes.records);
  ffn_gate_ = reinterpret_cast<float*>(arena_.take(sizes.ffn_hidden));
  ffn_up_ = reinterpret_cast<float*>(arena_.take(sizes.ffn_hidden));
  moe_ = arena_.take_array<uint8_t>(sizes.moe);
  attention_ = reinterpret_cast<float*>(arena_.take(sizes.attention));
  recurrent_ = reinterpret_cast<float*>(arena_.take(sizes.recurrent));
  arrivals_ = reinterpret_cast<int32_t*>(arena_.take(sizes.arrivals));
  logits_ = arena_.take_array<float>(n_logits() * head_rows());
  hidden_ = arena_.take_array<float>(static_cast<uint64_t>(program_.d_model) * head_rows());
  if (sizes.moe > 0) TRY(stream.zero(moe_, sizes.moe));
  if (sizes.arrivals > 0) TRY(stream.zero(arrivals_, sizes.arrivals));
  return Ok{};
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::Embed& o) const {
  const int n_rows = pass.batch.n_rows;
  const bool ahead = pass.pinned_tokens != nullptr;
  TRY(embed_rows(stream, {binding_.weight(o.table), ahead ? pass.pinned_tokens : pass.batch.tokens, n_rows,
                          buffers_[o.out], o.scale, ahead}));
  if (o.positions == kNone && o.kinds == kNone) return Ok{};
  const int width = shape_of(o.out).width;
  const int n_kinds = o.kinds == kNone ? 0 : static_cast<int>(program_.vectors[o.kinds].size()) / width;
  return add_positions(stream, {binding_.weight_or_none(o.positions), pass.batch, binding_.vector(o.kinds), n_kinds,
                                buffers_[o.out], width});
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::LayerNorm& o) const {
  return layer_norm(stream, {buffers_[o.x], binding_.vector(o.weight), binding_.vector(o.bias), o.eps,
                             shape_of(o.x).width, pass.batch.n_rows});
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::Gelu& o) const {
  return gelu(stream, buffers_[o.x], static_cast<int64_t>(pass.batch.n_rows) * shape_of(o.x).width);
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::NormMatmul& o) const {
  static_assert(kMaxProjections == kMaxGemmOutputs);
  for (size_t first = 0; first < o.outs.size(); first += kMaxProjections) {
    const int n = static_cast<int>(std::min<size_t>(kMaxProjections, o.outs.size() - first));
    if (pass.is_decode) {
      MatvecArgs args = matvec_args(decode_input(o.x, o.norm, o.eps), pass.batch.n_rows, dependent(pass));
      args.n_outs = n;
      for (int i = 0; i < n; ++i) {
        const op::Projection& p = o.outs[first + i];
        args.outs[i] = {binding_.weight(p.weight), binding_.vector(p.bias), buffers_[p.out], shape_of(p.out).width,
                        false};
      }
      TRY(matvec(stream, args));
    } else {
      PrefillProduct args;
      args.in = prefill_input(o.x, o.norm, o.eps, pass.batch.n_rows);
      args.exact = exact_;
      args.n_outputs = n;
      for (int i = 0; i < n; ++i) {
        const op::Projection& p = o.outs[first + i];
        args.outputs[i] = {binding_.weight(p.weight), binding_.vector(p.bias), buffers_[p.out], shape_of(p.out).width,
                           false};
      }
      TRY(prefill_product(stream, args, prefill_));
    }
  }
  if (!pass.adapters) return Ok{};
  std::vector<Adapted> products;
  for (const op::Projection& p : o.outs) products.push_back({p.weight, buffers_[p.out], shape_of(p.out).width});
  return add_adapters_of(stream, pass, decode_input(o.x, o.norm, o.eps), 0, pass.batch.n_rows, products);
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::MatmulAdd& o) const {
  const Weight& weight = binding_.weight(o.weight);
  const float* bias = binding_.vector(o.bias);
  if (pass.is_decode) {
    InputRows in = decode_input(o.x, kNone, 0);
    for (const MixedProduct& p : mixed_products_) {
      if (p.product != &o || !leaves_norm(pass, p)) continue;
      in.head_squares = recurrent_;
      in.head_width = p.head_width;
      in.eps = p.eps;
    }
    MatvecArgs args = matvec_args(in, pass.batch.n_rows, dependent(pass));
    args.n_outs = 1;
    args.outs[0] = {weight, bias, buffers_[o.residual], shape_of(o.residual).width, true, o.scale};
    TRY(matvec(stream, args));
  } else {
    PrefillProduct args;
    args.in = prefill_input(o.x, kNone, 0, pass.batch.n_rows);
    args.exact = exact_;
    args.n_outputs = 1;
    args.outputs[0] = {weight, bias, buffers_[o.residual], shape_of(o.residual).width, true, o.scale};
    TRY(prefill_product(stream, args, prefill_));
  }
  if (!pass.adapters) return Ok{};
  return add_adapters_of(stream, pass, decode_input(o.x, kNone, 0), 0, pass.batch.n_rows,
                         {{o.weight, buffers_[o.residual], shape_of(o.residual).width, o.scale}});
}

Status Lowering::add_adapters_of(const Stream& stream, const PassShape& pass, const InputRows& in, int first_row,
                                 int n_rows, const std::vector<Adapted>& products) const {
  AddAdaptersArgs args;
  args.view = pass.adapters.view;
  args.in = in;
  args.first_row = first_row;
  args.n_rows = n_rows;
  args.dependent = dependent(pass);
  const auto flush = [&]() -> Status {
    if (args.n_products > 0) TRY(add_adapters(stream, args));
    args.n_products = 0;
    return Ok{};
  };
  for (const Adapted& p : products) {
    if (!pass.adapters.changes(p.matrix)) continue;
    args.products[args.n_products++] = {p.matrix, p.out, binding_.weight(p.matrix).rows, p.pitch, p.factor};
    if (args.n_products == kMaxAdapted) TRY(flush());
  }
  return flush();
}

// Adapters change gate and up before the activation, which the kernels of prompts make in one piece with these
// products: here they are made apart, as floats. So they are for all rows of the pass, whatever each one's adapters
// change: a row's bits do not depend on its company.
Status Lowering::adapted_prefill_ffn(const Stream& stream, const PassShape& pass, const op::DenseFfn& o) const {
  const Weight gate = binding_.weight_or_none(o.gate), &up = binding_.weight(o.up), &down = binding_.weight(o.down);
  const PassAdapters& memory = pass.adapters;
  const int width = shape_of(o.x).width, d_ff = up.rows;
  for (int first = 0; first < pass.batch.n_rows; first += memory.ffn_rows) {
    const int n = std::min(memory.ffn_rows, pass.batch.n_rows - first);
    float* x = buffers_[o.x] + static_cast<int64_t>(first) * width;
    PrefillProduct in;
    in.in = prefill_input(o.x, o.norm, o.eps, n);
    in.in.x = x;
    in.exact = exact_;
    in.outputs[in.n_outputs++] = {up, nullptr, memory.ffn_up, d_ff, false};
    if (gate) in.outputs[in.n_outputs++] = {gate, nullptr, memory.ffn_gate, d_ff, false};
    TRY(prefill_product(stream, in, prefill_));
    InputRows rows = decode_input(o.x, o.norm, o.eps);
    rows.x = x;
    TRY(add_adapters_of(stream, pass, rows, first, n, {{o.up, memory.ffn_up, d_ff}, {o.gate, memory.ffn_gate, d_ff}}));
    TRY(activate(stream, o.activation, gate ? memory.ffn_gate : nullptr, memory.ffn_up,
                 static_cast<int64_t>(n) * d_ff));
    PrefillProduct out;
    out.in = {memory.ffn_up, d_ff, n, nullptr, nullptr, 0};
    out.exact = exact_;
    out.outputs[out.n_outputs++] = {down, nullptr, x, width, true, o.scale};
    TRY(prefill_product(stream, out, prefill_));
    const InputRows hidden{memory.ffn_up, nullptr, 0, d_ff, nullptr, nullptr};
    TRY(add_adapters_of(stream, pass, hidden, first, n, {{o.down, x, width, o.scale}}));
  }
  return Ok{};
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::GdnMix& o) const {
  GdnArgs args = gdn_args(o);
  args.batch = pass.batch;
  args.has_decode = pass.is_decode;
  args.max_decode_tokens = pass.is_decode ? pass.max_tokens : 0;
  args.leave_norm = leaves_norm(pass, o.recurrent_layer);
  args.n_prefill_slices = pass.is_decode ? 0 : pass.batch.n_slices;
  args.max_prefill_tokens = pass.is_decode ? 0 : pass.max_tokens;
  args.dependent = dependent(pass);
  return gdn_mix(stream, args);
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::Mamba2Mix& o) const {
  Mamba2Args args = mamba2_args(o);
  args.batch = pass.batch;
  args.is_decode = pass.is_decode;
  args.max_tokens = pass.max_tokens;
  args.leave_norm = leaves_norm(pass, o.recurrent_layer);
  args.dependent = dependent(pass);
  return mamba2_mix(stream, args);
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::CausalConv& o) const {
  CausalConvArgs args = conv_args(o);
  args.batch = pass.batch;
  args.dependent = dependent(pass);
  return causal_conv(stream, args);
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::SelectiveScan& o) const {
  SelectiveScanArgs args = scan_args(o);
  args.batch = pass.batch;
  args.dependent = dependent(pass);
  return selective_scan(stream, args);
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::Attention& o) const {
  AttentionArgs args = attention_args(o);
  args.batch = pass.batch;
  args.has_decode = pass.is_decode;
  args.has_prefill = !pass.is_decode;
  if (pass.is_decode) {
    args.max_decode_tokens = pass.max_tokens;
    args.max_decode_kv = pass.kv_bound;
  } else {
    args.max_prefill_tokens = pass.max_tokens;
  }
  args.dependent = dependent(pass);
  return attention(stream, args);
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::DenseFfn& o) const {
  if (!pass.is_decode && pass.adapters) return adapted_prefill_ffn(stream, pass, o);
  if (!pass.is_decode) return prefill_ffn(stream, prefill_ffn_args(o, pass.batch.n_rows), prefill_);
  const Weight gate = binding_.weight_or_none(o.gate), &up = binding_.weight(o.up), &down = binding_.weight(o.down);
  MatvecArgs in = matvec_args(decode_input(o.x, o.norm, o.eps), pass.batch.n_rows, dependent(pass));
  in.outs[in.n_outs++] = {up, nullptr, ffn_up_, up.rows, false};
  if (gate) in.outs[in.n_outs++] = {gate, nullptr, ffn_gate_, gate.rows, false};
  TRY(matvec(stream, in));
  if (pass.adapters) {
    TRY(add_adapters_of(stream, pass, in.in, 0, pass.batch.n_rows,
                        {{o.up, ffn_up_, up.rows}, {o.gate, ffn_gate_, up.rows}}));
  }
  const InputRows hidden{ffn_up_, nullptr, 0, up.rows, nullptr, gate ? ffn_gate_ : nullptr, o.activation};
  MatvecArgs out = matvec_args(hidden, pass.batch.n_rows, dependent(pass));
  out.n_outs = 1;
  out.outs[0] = {down, nullptr, buffers_[o.x], shape_of(o.x).width, true, o.scale};
  TRY(matvec(stream, out));
  if (!pass.adapters) return Ok{};
  return add_adapters_of(stream, pass, hidden, 0, pass.batch.n_rows,
                         {{o.down, buffers_[o.x], shape_of(o.x).width, o.scale}});
}

Status Lowering::run(const Stream& stream, const PassShape& pass, const op::MoeFfn& o) const {
  if (!pass.is_decode || !decode_kernels_take(o)) {
    return prefill_moe(stream, prefill_moe_args(o, pass.batch.n_rows), prefill_);
  }
  if (is_hosted(o)) return hosted_moe(stream, pass, o);
  MoeArgs args = moe_args(o, pass.batch.n_rows);
  args.dependent = dependent(pass);
  return moe(stream, args);
}

// Of decode rows: the choice, the way to the host, the shared expert meanwhile, and the sum of both.
Status Lowering::hosted_moe(const Stream& stream, const PassShape& pass, const op::MoeFfn& o) const {
  const int n = pass.batch.n_rows, width = shape_of(o.x).width;
  MoeArgs choice = moe_args(o, n);
  choice.dependent = dependent(pass);
  TRY(moe_route(stream, choice));
  const MoeScratch chosen = moe_scratch(choice, n, moe_);
  TRY(host_->begin(stream, {.mixture = binding_.hosted(o),
                            .n_rows = n,
                            .x = buffers_[o.x],
                            .ids = chosen.ids,
                            .weights = chosen.weights,
                            .weights_stride = o.n_used + 1,
                            .norm = binding_.vector(o.norm),
                            .eps = o.eps}));
  // The prefill class is not at work, and what it has for normed rows is as large.
  float* shared = o.has_shared() ? reinterpret_cast<float*>(prefill_.base) : nullptr;
  if (shared) {
    const Weight gate = binding_.weight_or_none(o.shared_gate), &up = binding_.weight(o.shared_up);
    MatvecArgs in = matvec_args(decode_input(o.x, o.norm, o.eps), n, dependent(pass));
    in.outs[in.n_outs++] = {up, nullptr, ffn_up_, up.rows, false};
    if (gate) in.outs[in.n_outs++] = {gate, nullptr, ffn_gate_, gate.rows, false};
    TRY(matvec(stream, in));
    const InputRows hidden{ffn_up_, nullptr, 0, up.rows, nullptr, gate ? ffn_gate_ : nullptr, o.activation};
    MatvecArgs out = matvec_args(hidden, n, dependent(pass));
    out.outs[out.n_outs++] = {binding_.weight(o.shared_down), nullptr, shared, width, false};
    TRY(matvec(stream, out));
  }
  // The weights, the shared expert's too, have o.scale in them.
  return host_->join(stream, {.shared = shared,
                              .shared_gate = chosen.weights + o.n_used,
                              .gate_stride = o.n_used + 1,
                              .out = buffers_[o.x],
                              .n_rows = n,
                              .width = width});
}

Status Lowering::body(const Stream& stream, const PassShape& pass) const {
  for (size_t i = 0; i < program_.ops.size(); ++i) {
    const Op& op = program_.ops[i];
    Status done = std::visit([&](const auto& o) { return run(stream, pass, o); }, op);
    if (!done) {
      done.error().message = std::string(op_name(op)) + ", op " + std::to_string(i) + ", " +
                             std::to_string(pass.batch.n_rows) + " rows: " + done.error().message;
      return done;
    }
  }
  return Ok{};
}

const char* family_name(Family family) {
  switch (family) {
    case Family::embed: return "embedding";
    case Family::projections: return "norm and projections";
    case Family::delta_rule: return "delta rule";
    case Family::state_space: return "state space";
    case Family::attention: return "attention";
    case Family::residual_products: return "output projections";
    case Family::layer_norms: return "layer norms and GELU";
    case Family::ffn: return "feed-forward";
    case Family::router: return "router";
    case Family::experts_up: return "experts up";
    case Family::experts_down: return "experts down";
  }
  return "";
}

Status Lowering::family(const Stream& stream, const PassShape& pass, Family family) const {
  const auto has_parts = [&](const op::MoeFfn& moe) {
    return pass.is_decode && decode_kernels_take(moe) && !is_hosted(moe);
  };
  const auto is = [&](const Op& op) {
    const auto* moe = std::get_if<op::MoeFfn>(&op);
    switch (family) {
      case Family::embed: return std::holds_alternative<op::Embed>(op);
      case Family::projections: return std::holds_alternative<op::NormMatmul>(op);
      case Family::delta_rule: return std::holds_alternative<op::GdnMix>(op);
      case Family::state_space:
        return std::holds_alternative<op::Mamba2Mix>(op) || std::holds_alternative<op::CausalConv>(op) ||
               std::holds_alternative<op::SelectiveScan>(op);
      case Family::attention: return std::holds_alternative<op::Attention>(op);
      case Family::residual_products: return std::holds_alternative<op::MatmulAdd>(op);
      case Family::layer_norms:
        return std::holds_alternative<op::LayerNorm>(op) || std::holds_alternative<op::Gelu>(op);
      case Family::ffn: return std::holds_alternative<op::DenseFfn>(op) || (moe && !has_parts(*moe));
      case Family::router:
      case Family::experts_up:
      case Family::experts_down: return moe && has_parts(*moe);
    }
    return false;
  };
  for (const Op& op : program_.ops) {
    if (!is(op)) continue;
    if (family == Family::ffn || !std::holds_alternative<op::MoeFfn>(op)) {
      TRY(std::visit([&](const auto& o) { return run(stream, pass, o); }, op));
      continue;
    }
    MoeArgs args = moe_args(std::get<op::MoeFfn>(op), pass.batch.n_rows);
    args.dependent = dependent(pass);
    if (family == Family::router) TRY(moe_route(stream, args));
    if (family == Family::experts_up) TRY(moe_up(stream, args));
    if (family == Family::experts_down) TRY(moe_down(stream, args));
  }
  return Ok{};
}

Status Lowering::head(const Stream& stream, const PassShape& pass, int first, int n) const {
  const int32_t* rows = pass.batch.logit_rows + first;
  for (const Op& any : program_.ops) {
    const auto take_hidden = [&](BufferId x, VectorId norm, float eps) {
      return norm_rows(stream, {.x = buffers_[x],
                                .width = shape_of(x).width,
                                .n_rows = n,
                                .gather = rows,
                                .norm = binding_.vector(norm),
                                .eps = eps,
                                .out = hidden_,
                                .half = {}});
    };
    const auto* end = std::get_if<op::HiddenOut>(&any);
    if (end && pass.hidden) TRY(take_hidden(end->x, kNone, 0));
    const auto* o = std::get_if<op::LmHead>(&any);
    if (!o) continue;
    if (pass.hidden) TRY(take_hidden(o->x, o->norm, o->eps));
    if (!pass.logits) continue;
    InputRows in = decode_input(o->x, o->norm, o->eps);
    in.gather = rows;
    MatvecArgs args = matvec_args(in, n, dependent(pass));
    args.n_outs = 1;
    args.outs[0] = {binding_.weight(o->weight), nullptr, logits_, program_.n_vocab, false, o->scale};
    TRY(matvec(stream, args));
  }
  return Ok{};
}

Status Lowering::replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const {
  for (const Op& any : program_.ops) {
    if (const auto* o = std::get_if<op::GdnMix>(&any)) {
      TRY(gdn_replay(stream, gdn_args(*o), recurrent, recorded, n_tokens));
    }
    if (const auto* o = std::get_if<op::Mamba2Mix>(&any)) {
      TRY(mamba2_replay(stream, mamba2_args(*o), recurrent, recorded, n_tokens));
    }
    if (const auto* o = std::get_if<op::CausalConv>(&any)) {
      TRY(causal_conv_replay(stream, conv_args(*o), recurrent, recorded, n_tokens));
    }
    if (const auto* o = std::get_if<op::SelectiveScan>(&any)) {
      TRY(selective_scan_replay(stream, scan_args(*o), recurrent, recorded, n_tokens));
    }
  }
  return Ok{};
}

}  // namespace chimere::cuda

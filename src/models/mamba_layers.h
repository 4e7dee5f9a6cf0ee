// mamba_layers.h  Mamba-2 and Mamba-1 mixers as ops, for the architectures that contain them.
#pragma once

#include "models/layers.h"

namespace chimere::models {

struct Mamba2 {
  int kernel, n_heads, d_head, n_groups, d_state;

  uint64_t d_inner() const { return static_cast<uint64_t>(n_heads) * d_head; }
  uint64_t channels() const { return d_inner() + 2 * static_cast<uint64_t>(n_groups) * d_state; }
  uint64_t projected() const { return d_inner() + channels() + n_heads; }  // rows of ssm_in
};

struct Mamba2Buffers {
  BufferId in, out;
};

// The keys ssm.*: inner_size / time_step_rank is the head size, group_count the number of (B, C) pairs.
Result<Mamba2> read_mamba2(const gguf::Metadata& m, const Config& c);
Mamba2Buffers mamba2_buffers(Binder& b, const Mamba2& s);

// x += scale ssm_out(mamba2(ssm_in RMSNorm(x; attn_norm)))
void add_mamba2(Binder& b, const Config& c, const Mamba2& s, int layer, const Trunk& t, const Mamba2Buffers& buffers,
                float scale = 1);

// Its two parts, for layers whose norm feeds another mixer too. The gated norm may be absent when `norm_optional`.
op::Projection mamba2_projection(Binder& b, const Config& c, const Mamba2& s, int layer, const Mamba2Buffers& buffers);
void add_mamba2_mix(Binder& b, const Config& c, const Mamba2& s, int layer, const Trunk& t,
                    const Mamba2Buffers& buffers, float scale, bool norm_optional);

struct Mamba1 {
  enum class Norms { none, plain, weighted };  // of dt, B and C
  int kernel, d_inner, d_state, dt_rank;
  Norms norms;
};

struct Mamba1Buffers {
  BufferId xz, x, dt_low, b, c, dt, out;
};

Result<Mamba1> read_mamba1(const gguf::Metadata& m, const Config& c, Mamba1::Norms norms);
Mamba1Buffers mamba1_buffers(Binder& b, const Mamba1& s);
void add_mamba1(Binder& b, const Config& c, const Mamba1& s, int layer, const Trunk& t, const Mamba1Buffers& buffers);

}  // namespace chimere::models

// attention_fast.h  The tensor-core kernels of attention, behind attention().
#pragma once

#include "backend/cuda/kernels/attention/attention.h"

namespace chimere::cuda::attention_detail {

// A row's context is cut into at most so many splits of whole pages: blocks enough to fill a card with two KV heads.
inline constexpr int kMaxSplits = 64;

inline bool has_fast_path(const AttentionArgs& a) {
  const auto fast_type = [](DType t) { return t == DType::F16 || t == DType::Q8_0 || t == DType::Q4_0; };
  const bool fast_size = a.head_dim_k == 64 || a.head_dim_k == 128 || a.head_dim_k == 256;
  return !a.exact && a.head_dim_k == a.head_dim_v && fast_size && fast_type(a.k_type) && fast_type(a.v_type);
}

// Floats of a decode row's partial results: for each head and split an unscaled output, its maximum and its sum.
inline int64_t partial_floats(const AttentionArgs& a) { return int64_t{a.n_heads} * kMaxSplits * (a.head_dim_v + 2); }

Status decode_attention(const Stream& stream, const AttentionArgs& args);
Status prefill_attention(const Stream& stream, const AttentionArgs& args);

}  // namespace chimere::cuda::attention_detail

// state_layout.h  How one sequence's state is laid out in memory: KV pages and recurrent state.
//
// A sequence owns
//   - a list of KV pages. A page covers kPageTokens consecutive positions of *all* attention layers, so one id per
//     64 tokens is all that a prefix tree has to share. Inside a page, layer after layer:
//         K [n_kv_heads][kPageTokens][k_row_bytes]   then   V [n_kv_heads][kPageTokens][v_row_bytes]
//     so that attention of one head walks contiguous rows.
//   - one recurrent blob of floats. Layer after layer: conv window [conv_width][conv_channels] (oldest first), then
//     the state matrices [n_heads][d_key][d_value].
// The layout follows from the model and the KV format; backends index with it, cache/ allocates with it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace chimere {

inline constexpr int kPageTokens = 64;

// How keys and values are stored: F32, F16, Q8_0 or Q4_0 each. With `rotate`, queries and keys are multiplied by an
// orthonormal Hadamard matrix in blocks of the largest power of two that divides the head size, which spreads
// outliers before quantisation and leaves every score unchanged.
struct KvFormat {
  DType k = DType::F16;
  DType v = DType::F16;
  bool rotate = false;
};

struct KvLayer {
  int n_kv_heads;
  int head_dim_k;
  int head_dim_v;
};

struct RecurrentLayer {
  int conv_width;  // inputs remembered: kernel size - 1
  int conv_channels;
  int n_heads;
  int d_key;
  int d_value;
  // Floats of a token's replay record beside its conv input: what its decays and updates come from.
  int recorded_gates = 2 * n_heads;

  int64_t conv_floats() const { return int64_t{conv_width} * conv_channels; }
  int64_t matrix_floats() const { return int64_t{n_heads} * d_key * d_value; }
};

class StateLayout {
 public:
  // Fails when a head size is no multiple of the quantisation block of its KV type.
  static Result<StateLayout> create(std::vector<KvLayer> kv, std::vector<RecurrentLayer> recurrent, KvFormat format);

  const std::vector<KvLayer>& kv() const { return kv_; }
  const std::vector<RecurrentLayer>& recurrent() const { return recurrent_; }
  const KvFormat& format() const { return format_; }

  uint64_t k_row_bytes(int layer) const { return row_bytes(format_.k, kv_[layer].head_dim_k); }
  uint64_t v_row_bytes(int layer) const { return row_bytes(format_.v, kv_[layer].head_dim_v); }
  // Byte offset inside a page of the first row of one head.
  uint64_t k_offset(int layer, int head) const { return kv_offset_[layer] + k_row_bytes(layer) * kPageTokens * head; }
  uint64_t v_offset(int layer, int head) const {
    return kv_offset_[layer] + (k_row_bytes(layer) * kv_[layer].n_kv_heads + v_row_bytes(layer) * head) * kPageTokens;
  }
  uint64_t page_bytes() const { return page_bytes_; }
  uint64_t kv_bytes_per_token() const { return page_bytes_ / kPageTokens; }

  // Float offsets inside the recurrent blob.
  int64_t conv_offset(int layer) const { return recurrent_offset_[layer]; }
  int64_t matrix_offset(int layer) const { return recurrent_offset_[layer] + recurrent_[layer].conv_floats(); }
  int64_t recurrent_floats() const { return recurrent_floats_; }

 private:
  std::vector<KvLayer> kv_;
  std::vector<RecurrentLayer> recurrent_;
  KvFormat format_;
  std::vector<uint64_t> kv_offset_;
  std::vector<int64_t> recurrent_offset_;
  uint64_t page_bytes_ = 0;
  int64_t recurrent_floats_ = 0;
};

}  // namespace chimere

#include "backend/state_layout.h"

#include <string>
#include <utility>

namespace chimere {
namespace {

Status check_row(DType type, int head_dim, const char* what) {
  if (type != DType::F32 && type != DType::F16 && type != DType::Q8_0 && type != DType::Q4_0) {
    return Error{Code::unsupported,
                 std::string(what) + " cache type " + std::string(name(type)) + ": expected f32, f16, q8_0 or q4_0"};
  }
  if (head_dim % info(type).block_elems != 0) {
    return Error{Code::unsupported, std::string(what) + " cache type " + std::string(name(type)) +
                                        ": head size must be a multiple of " + std::to_string(info(type).block_elems) +
                                        ", found " + std::to_string(head_dim)};
  }
  return Ok{};
}

// Rows start on cache lines so that vector loads of a head never straddle into the next layer's lines.
uint64_t align64(uint64_t n) { return (n + 63) / 64 * 64; }

}  // namespace

Result<StateLayout> StateLayout::create(std::vector<KvLayer> kv, std::vector<RecurrentLayer> recurrent,
                                        KvFormat format) {
  StateLayout s;
  s.kv_ = std::move(kv);
  s.recurrent_ = std::move(recurrent);
  s.format_ = format;
  for (size_t i = 0; i < s.kv_.size(); ++i) {
    const KvLayer& layer = s.kv_[i];
    TRY(check_row(format.k, layer.head_dim_k, "key"));
    TRY(check_row(format.v, layer.head_dim_v, "value"));
    s.kv_offset_.push_back(s.page_bytes_);
    const uint64_t row = s.k_row_bytes(static_cast<int>(i)) + s.v_row_bytes(static_cast<int>(i));
    s.page_bytes_ += align64(row * layer.n_kv_heads * kPageTokens);
  }
  for (const RecurrentLayer& layer : s.recurrent_) {
    s.recurrent_offset_.push_back(s.recurrent_floats_);
    s.recurrent_floats_ += static_cast<int64_t>(align64(layer.conv_floats() + layer.matrix_floats()));
  }
  return Result<StateLayout>{std::move(s)};
}

}  // namespace chimere

// packed_matrix.cpp  Life of a packed matrix: checks, memory, packing.
#include "backend/cpu/packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "backend/cpu/packed_matrix_encode.h"
#include "backend/cpu/packed_matrix_memory.h"
#include "base/check.h"

namespace chimere::cpu {

bool PackedMatrix::supports(DType type) { return panel_kind(type).has_value(); }

bool PackedMatrix::is_float() const { return is_float_kind(kind_); }

Result<PackedMatrix> PackedMatrix::layout_of(const TensorView& tensor) {
  const std::string label = "tensor " + std::string(tensor.name);
  const std::optional<PanelKind> kind = panel_kind(tensor.type);
  if (!kind) {
    return Error{Code::unsupported, label + ": expected a float or quantised type to multiply with, found " +
                                        std::string(chimere::name(tensor.type))};
  }
  const uint64_t block = static_cast<uint64_t>(info(tensor.type).block_elems);
  if (tensor.ne[0] == 0 || tensor.ne[0] % block != 0 || tensor.rows() == 0) {
    return Error{Code::invalid_argument, label + ": expected rows of a whole number of blocks of " +
                                             std::to_string(block) + ", found shape " + to_string(tensor.ne)};
  }
  const uint64_t n_experts = tensor.ne[2] * tensor.ne[3];
  const uint64_t panels_per_expert = (tensor.ne[1] + kPanelRows - 1) / kPanelRows;
  constexpr uint64_t kMax = static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
  if (n_experts > kMax || panels_per_expert > kMax || tensor.ne[0] > kMax) {
    return Error{Code::invalid_argument, label + ": dimensions up to 2^31 are handled, found " + to_string(tensor.ne)};
  }
  PackedMatrix m;
  m.type_ = tensor.type;
  m.kind_ = *kind;
  m.n_cols_ = static_cast<int64_t>(tensor.ne[0]);
  m.n_rows_ = static_cast<int64_t>(tensor.ne[1]);
  m.n_experts_ = static_cast<int>(n_experts);
  m.n_panels_ = static_cast<int>(panels_per_expert);
  const PanelGeometry geometry = panel_geometry(*kind, m.n_cols_);
  m.panel_bytes_ = geometry.panel_bytes;
  m.scales_offset_ = geometry.scales_offset;
  const int64_t n_panels = static_cast<int64_t>(n_experts * panels_per_expert);
  m.size_bytes_ = static_cast<size_t>(n_panels * geometry.panel_bytes);
  return Result<PackedMatrix>{std::move(m)};
}

PackedMatrix PackedMatrix::layout() const {
  PackedMatrix m(*this);
  m.data_.reset();
  m.places_ = nullptr;
  return m;
}

Result<PackedMatrix> PackedMatrix::pack(const TensorView& tensor, const ParallelFor& parallel) {
  TRY_ASSIGN(PackedMatrix m, layout_of(tensor));
  m.data_ = allocate_weights(m.size_bytes_);
  if (!m.data_) {
    return Error{Code::exhausted, "tensor " + std::string(tensor.name) + ": no memory for " +
                                      std::to_string(m.size_bytes_) + " bytes of packed weights"};
  }

  const auto pack_panels = [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      uint8_t* panel = m.data_.get() + p * m.panel_bytes_;
      const int64_t expert = p / m.n_panels_, first = p % m.n_panels_ * kPanelRows;
      const int rows = static_cast<int>(std::min<int64_t>(kPanelRows, m.n_rows_ - first));
      // Padding rows are multiplied like the others; zeros keep them from being slow denormals or NaN.
      if (rows < kPanelRows) std::memset(panel, 0, static_cast<size_t>(m.panel_bytes_));
      for (int r = 0; r < rows; ++r) {
        pack_row(m.type_, tensor.row(static_cast<uint64_t>(expert * m.n_rows_ + first + r)), m.n_cols_, panel, r);
      }
    }
  };
  const int64_t n_panels = int64_t{m.n_experts_} * m.n_panels_;
  if (parallel) {
    parallel(n_panels, pack_panels);
  } else {
    pack_panels(0, n_panels);
  }
  return Result<PackedMatrix>{std::move(m)};
}

void PackedMatrix::unpack_row(int expert, int64_t row, float* dst) const {
  CHECK(expert >= 0 && expert < n_experts_ && row >= 0 && row < n_rows_);
  unpack_panel_row(type_, panel(expert, static_cast<int>(row / kPanelRows)), static_cast<int>(row % kPanelRows),
                   n_cols_, dst);
}

}  // namespace chimere::cpu

// packed_matrix.h  Weights repacked at load for the CPU, and their product with rows of activations.
//
// Rows are grouped into panels of 16; inside a panel, vector lane r belongs to row r, so a dot product never needs a
// horizontal sum and many tokens share one unpacking of the weights. Packing is lossless: every type keeps its exact
// values (isa/panel_layout.h has the drawings), in about the size of the file (IQ1, IQ2 and IQ3_XXS grow to 3 or 4
// bits a weight).
//
// Numerics: in ActMode::int8 the products inside a block of 32 are summed exactly in integers and scaled in float32;
// in ActMode::f32 the weight is decoded exactly as dequantize_row does and multiplied by the float activation. Either
// way a row of the result is the same bits for every number of tokens, order of gathering and split over threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "backend/cpu/activations.h"
#include "backend/cpu/isa/panel_layout.h"
#include "base/result.h"
#include "tensor/tensor_view.h"

namespace chimere::cpu {

// Calls body(begin, end) over pieces of [0, n), possibly on several threads, and returns when all are done.
using ParallelFor = std::function<void(int64_t n, const std::function<void(int64_t, int64_t)>& body)>;

// n_experts matrices [n_rows, n_cols] in panels. Owns 64-byte aligned memory; move-only; read-only after pack().
class PackedMatrix {
 public:
  PackedMatrix(PackedMatrix&&) = default;
  PackedMatrix& operator=(PackedMatrix&&) = default;

  // Packs a tensor {n_cols, n_rows[, n_experts]}. Without `parallel` on the calling thread.
  static Result<PackedMatrix> pack(const TensorView& tensor, const ParallelFor& parallel = {});
  // What pack() would make of it, without its bytes: sizes, and after put_at() a matrix whose experts lie elsewhere.
  static Result<PackedMatrix> layout_of(const TensorView& tensor);
  // places[e] is where the panels of expert e begin, or will when they are asked for. REQUIRES: of layout_of(); the
  // list lives as long as this.
  void put_at(const uint8_t* const* places) { places_ = places; }
  // The same as layout_of() of what it was packed from.
  PackedMatrix layout() const;

  // True when pack() knows the type.
  static bool supports(DType type);

  DType type() const { return type_; }
  int64_t n_rows() const { return n_rows_; }
  int64_t n_cols() const { return n_cols_; }
  int n_experts() const { return n_experts_; }
  int n_panels() const { return n_panels_; }  // of one expert
  size_t size_bytes() const { return size_bytes_; }
  size_t expert_bytes() const { return static_cast<size_t>(n_panels_ * panel_bytes_); }
  // The bytes are its own, and not somewhere that put_at() named.
  bool owns_bytes() const { return data_ != nullptr; }
  bool is_float() const;  // F32, F16, BF16: always multiplied in float32

  // The exact values of one row: what dequantize_row gives for the row that was packed.
  void unpack_row(int expert, int64_t row, float* dst) const;

  PanelKind kind() const { return kind_; }
  const uint8_t* panel(int expert, int panel) const {
    const uint8_t* first = places_ ? places_[expert] : data_.get() + expert * (n_panels_ * panel_bytes_);
    return first + panel * panel_bytes_;
  }
  int64_t panel_bytes() const { return panel_bytes_; }
  int64_t scales_offset() const { return scales_offset_; }  // from the start of a panel

 private:
  PackedMatrix() = default;
  PackedMatrix(const PackedMatrix&) = default;

  DType type_ = DType::F32;
  PanelKind kind_ = PanelKind::f32;
  int64_t n_rows_ = 0;
  int64_t n_cols_ = 0;
  int n_experts_ = 0;
  int n_panels_ = 0;
  int64_t panel_bytes_ = 0;
  int64_t scales_offset_ = 0;
  size_t size_bytes_ = 0;
  std::shared_ptr<uint8_t> data_;  // shares its chunk with other matrices, its bytes with none
  const uint8_t* const* places_ = nullptr;
};

enum class ActMode { int8, f32 };  // f32: exact

// y[i * ld_y + row] = sum_k w[row][k] * x[act_rows[i]][k] for i < n_tokens and the rows of panels
// [panel_begin, panel_end). An empty act_rows means row i. With out_rows, token i goes to y + out_rows[i] * ld_y.
// Single-threaded: the caller splits the panels among its threads. Padding rows of the last panel are not written.
// REQUIRES: x.k() == w.n_cols(); for ActMode::int8 and non-float weights the rows in use are quantised.
void matmul(const PackedMatrix& w, int expert, const Activations& x, std::span<const int32_t> act_rows, int n_tokens,
            ActMode mode, float* y, int64_t ld_y, int panel_begin, int panel_end,
            std::span<const int32_t> out_rows = {});

}  // namespace chimere::cpu

// activations.cpp  Storage and quantisation of activation rows.
#include "backend/cpu/activations.h"

#include <new>

#include "backend/cpu/packed_matrix_dispatch.h"
#include "base/check.h"

namespace chimere::cpu {

namespace {
constexpr std::align_val_t kAlign{64};
}

void Activations::Free::operator()(ActBlock* p) const { ::operator delete[](p, kAlign); }

void Activations::reserve(int64_t max_rows, int64_t max_k) {
  const int64_t need = max_rows * ((max_k + kBlockCols - 1) / kBlockCols);
  if (need <= capacity_) return;
  blocks_.reset(static_cast<ActBlock*>(::operator new[](static_cast<size_t>(need) * sizeof(ActBlock), kAlign)));
  capacity_ = need;
}

void Activations::bind(const float* x, int64_t ld, int64_t n_rows, int64_t k) {
  reserve(n_rows, k);
  x_ = x;
  ld_ = ld;
  n_rows_ = n_rows;
  k_ = k;
  n_blocks_ = (k + kBlockCols - 1) / kBlockCols;
}

void Activations::quantize_rows(int64_t row_begin, int64_t row_end) {
  CHECK(0 <= row_begin && row_begin <= row_end && row_end <= n_rows_);
  const PanelKernels& kernels = panel_kernels();
  for (int64_t r = row_begin; r < row_end; ++r) kernels.quantize(row(r), k_, blocks_.get() + r * n_blocks_);
}

}  // namespace chimere::cpu

// products.h  Products of a pass that several ops are made of, and what adapters add to them.
#pragma once

#include <vector>

#include "backend/cuda/kernels/rows/adapters.h"
#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {

// A bound product over all rows of a pass.
Status run_decode_product(const Stream& stream, const PassShape& pass, MatvecArgs args);
Status run_prefill_product(const Stream& stream, const PassShape& pass, PrefillProduct args,
                           const PrefillScratch& scratch);
void measure_decode_product(const BindContext& c, int width, ScratchSizes& sizes);

// What the pass's adapters add to products of rows [first_row, first_row + n_rows), where they change the matrix.
Status run_adapters(const Stream& stream, const PassShape& pass, const InputRows& in, int first_row, int n_rows,
                    const std::vector<AdaptedProduct>& products);
inline Status run_adapters(const Stream& stream, const PassShape& pass, const InputRows& in,
                           const std::vector<AdaptedProduct>& products) {
  return run_adapters(stream, pass, in, 0, pass.batch.n_rows, products);
}

// A feed-forward on decode rows: gate and up in one launch, then down, which applies the activation as it reads.
struct DecodeFfn {
  MatvecArgs up, down;

  DecodeFfn(const BindContext& c, const InputRows& in, const FfnWeights& weights, const MatvecOut& out);
  void measure(const BindContext& c, ScratchSizes& sizes) const;
};

}  // namespace chimere::cuda
